"""What torch needs for tracing is loaded when something traces, and is then as whole as ever."""

from __future__ import annotations

import subprocess
import sys

import pytest

DEFERRED = "import sys; from routelearn.runtime.deferring import *; defer(); import torch\n"
LOADED = "print(type(sys.modules[LATER]).__name__, *sorted(set(TRACING) & set(sys.modules)))\n"


def told(code):
    ran = subprocess.run([sys.executable, "-c", DEFERRED + code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_what_only_computes_does_without():
    code = "x = torch.rand(2, 3, requires_grad=True); torch.nn.Linear(3, 3)(x).softmax(-1).sum().backward()\n"
    assert told(code + LOADED) == "Pending", "torch loads something else for tracing; name it in TRACING"


@pytest.mark.parametrize("name", ["torch._dynamo", "torch._inductor", "torch._decomp", "torch._prims", "torch._refs"])
def test_what_traces_finds_all_of_it_and_each_module_once(name):
    code = f"import {name} as module\nprint(module is sys.modules[module.__spec__.name], type(sys.modules[LATER]))"
    assert told(code) == "True <class 'module'>"


def test_names_of_the_module_are_there():
    assert told("print(torch._meta_registrations.meta_index_Tensor.__name__)") == "meta_index_Tensor"
    assert told("from torch._meta_registrations import meta_mm; print(meta_mm.__name__)") == "meta_mm"


def test_compiling_and_fake_tensors_work():
    code = """
from torch._subclasses import FakeTensorMode
bag = torch.nn.functional.embedding_bag
with FakeTensorMode():
    print(*bag(torch.zeros(3, dtype=torch.long), torch.rand(4, 5), torch.zeros(1, dtype=torch.long)).shape)
compiled = torch.compile(lambda x: (x @ x).softmax(-1).sum(), backend="aot_eager")
print(float(compiled(torch.ones(4, 4))))
"""
    assert told(code).split() == ["1", "5", "4.0"]


def test_too_late_nothing_changes():
    ran = subprocess.run(
        [sys.executable, "-c", "import torch; " + DEFERRED + LOADED], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split()[0] == "module"

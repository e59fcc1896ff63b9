"""The commands and the Python of a page, found in its text and run one after the other in one process.

`python snippets.py PAGE` runs those of a page or notebook in the current folder: one start of the program for all of
them. What takes long is made short by options that come last and win; everything else is as the page has it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
NARROW = "--width 32"
SMALL = f"--device cpu {NARROW} --epochs 1 --epoch-steps 2 --batch 4"
SHORT = {  # command -> options that end it soon
    "train": f"{SMALL} --validation-instances 8 --evaluation-instances 8",
    "solve": "--seconds 0.1",
    "improve": "--seconds 0.1",
    "evaluate": "--limit 8",
    "tours": "--count 8",
}
SHORTER = (  # the same in Python
    (r"\bminutes=[\d.]+", "epochs=1, epoch_steps=2, batch=(4,), width=32, validation_instances=8"),
    (r"\blimit=\d+", "limit=10"),
    (r"\bseconds=[\d.]+", "seconds=0.1"),
    (r"\bslice\(0, \d+\)", "slice(0, 4)"),
)
UNBOUNDED = {"reproduce", "serve", "ray"}  # whole tables, a server, a cluster: parsed here, run by their own tests
PREFIX = r"(?:\$ )?(?:cat (?P<stdin>\S+) \| )?(?P<torchrun>torchrun .*-m )?routelearn (?P<rest>.*)"


class Snippet(NamedTuple):
    line: int  # of the page
    kind: str  # command or python
    text: str  # what follows `routelearn`, or the code
    stdin: str | None = None
    alone: bool = True  # False: several processes share the work


def blocks(page: str) -> Iterator[tuple[int, str, str]]:
    """(line, language, text) of every fenced block of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for match in re.finditer(r"^```([a-z]*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        yield text.count("\n", 0, match.start()) + 2, match[1], match[2]


def snippets(page: str) -> list[Snippet]:
    """Python blocks and `routelearn` commands in the order of the page; continued lines are joined.

    Of a notebook its cells of code, by their number, without what only a notebook understands (`%matplotlib inline`).
    """
    if page.endswith(".ipynb"):
        cells = enumerate(json.loads((ROOT / page).read_text(encoding="utf-8"))["cells"])
        sources = ((number, "".join(cell["source"])) for number, cell in cells if cell["cell_type"] == "code")
        return [Snippet(number, "python", re.sub(r"^%.*\n", "", text, flags=re.MULTILINE)) for number, text in sources]
    found = []
    for first, language, text in blocks(page):
        if language == "python":
            found.append(Snippet(first, "python", text))
        elif not language:
            for line in text.replace("\\\n", " ").splitlines():
                if match := re.fullmatch(PREFIX, line):
                    command, _, _ = match["rest"].partition(" | ")
                    found.append(Snippet(first, "command", command, match["stdin"], not match["torchrun"]))
    return found


def words(snippet: Snippet) -> list[str]:
    return shlex.split(snippet.text, comments=True)


def run_command(snippet: Snippet) -> None:
    from routelearn.cli import main, take_plugins

    name = take_plugins(words(snippet))[0][0]
    if UNBOUNDED & {*words(snippet)} or not snippet.alone:
        return
    usual = sys.stdin
    try:
        if snippet.stdin is not None:
            sys.stdin = open(snippet.stdin, encoding="utf-8")  # noqa: SIM115 (closed with the process)
        short = SHORT.get(name, "")
        if "--warm-start" in words(snippet):  # as wide as the model
            short = short.replace(NARROW, "")
        main([*words(snippet), *short.split()])
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.stdin = usual


def run_python(snippet: Snippet, names: dict[str, Any]) -> None:
    """A block whose first line is a comment with a file's name is that file."""
    code = snippet.text
    for pattern, shorter in SHORTER:
        code = re.sub(pattern, shorter, code)
    if file := re.match(r"# (\w+\.py)\n", code):
        Path(file[1]).write_text(code)
    else:
        exec(compile(code, f"line {snippet.line}", "exec"), names)


def main(page: str) -> None:
    os.environ["MPLBACKEND"] = "agg"
    import torch

    torch.set_num_threads(1)
    names: dict[str, Any] = {"__name__": "snippet"}
    prepared = Path("prepared.py")
    if prepared.exists():
        exec(prepared.read_text(), names)
    for snippet in snippets(page):
        print(f"{page}, line {snippet.line}: {snippet.text.strip()}", file=sys.stderr, flush=True)
        began = time.perf_counter()
        if snippet.kind == "python":
            run_python(snippet, names)
        else:
            run_command(snippet)
        print(f"{time.perf_counter() - began:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1])

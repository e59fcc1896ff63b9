"""A client generated from the live description: without a warning, and of use."""

from __future__ import annotations

import importlib
import subprocess
import sys
import time
from pathlib import Path

import pytest
from requesting import SQUARE

pytest.importorskip("httpx")
pytest.importorskip("openapi_python_client")
from routelearn.serve.schemas import ROUND

pytestmark = [pytest.mark.extra, pytest.mark.slow]


@pytest.fixture(scope="module")
def package(guarded, tmp_path_factory):
    """The generated package."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "config.yml").write_text("post_hooks: []\n")  # no linter over what is thrown away
    command = [str(Path(sys.executable).parent / "openapi-python-client"), "generate", "--fail-on-warning"]
    command += ["--url", f"{guarded.url}/openapi.json", "--meta", "none", "--config", str(folder / "config.yml")]
    made = subprocess.run(
        [*command, "--output-path", str(folder / "routes_client")], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stdout + made.stderr
    assert "arning" not in made.stdout + made.stderr
    sys.path.insert(0, str(folder))
    yield "routes_client"
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def client(package, guarded):
    module = importlib.import_module(f"{package}.client")
    return module.AuthenticatedClient(base_url=guarded.url, token=guarded.token("other"), timeout=120)


@pytest.fixture(scope="module")
def call(package, client):
    """Functions by operation id."""

    def called(name, **given):
        return importlib.import_module(f"{package}.api.default.{name}").sync(client=client, **given)

    return called


@pytest.fixture(scope="module")
def models(package):
    return importlib.import_module(f"{package}.models")


def test_an_instance_and_a_round_are_solved(call, models):
    tour = call("solve", body=models.SolveRequest(coords=SQUARE, seconds=0.0))
    assert isinstance(tour, models.Answer)
    assert sorted(tour.routes[0].stops) == [0, 1, 2, 3, 4]
    plan = call("solve", body=models.RoundRequest.from_dict({**ROUND, "seconds": 0.1}))
    assert isinstance(plan, models.RoundAnswer)
    assert sorted(plan.routes[0].stops) == ["A", "B"]
    assert plan.routes[0].visits[0].kind == "start"


def test_a_batch_is_solved(call, models):
    instances = [models.Instance(coords=SQUARE), models.Instance(coords=SQUARE[:4])]
    found = call("solve_batch", body=models.BatchRequest(instances=instances, seconds=0.0))
    assert [len(one.routes[0].stops) for one in found.answers] == [5, 4]


def test_a_job_is_made_fetched_listed_and_forgotten(call, models):
    job = call("create_job", body=models.SolveRequest(coords=SQUARE, seconds=0.0))
    assert isinstance(job, models.Job)
    end = time.monotonic() + 60
    while job.state in ("queued", "running") and time.monotonic() < end:
        job = call("get_job", id=job.id)
    assert job.state == "done"
    assert job.cost == job.answer.cost
    assert job.id in [one.id for one in call("list_jobs").jobs]
    call("delete_job", id=job.id)
    assert isinstance(call("get_job", id=job.id), models.Failure)


def test_a_refusal_arrives_as_one(call, models):
    told = call("solve", body=models.SolveRequest(coords=SQUARE, demand=[0.0, 1.0, 2.0, 3.0, -4.0], capacity=9.0))
    assert isinstance(told, models.Failure)
    assert (told.field, "it cannot be negative" in told.error) == ("demand", True)


def test_without_the_token_the_client_is_told(package, guarded, models):
    module = importlib.import_module(f"{package}.client")
    wrong = module.AuthenticatedClient(base_url=guarded.url, token="wrong")
    told = importlib.import_module(f"{package}.api.default.list_problems").sync(client=wrong)
    assert isinstance(told, models.Failure)
    assert "asks for a token" in told.error

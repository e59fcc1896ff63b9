"""The wheel: models and examples inside, and it solves an example far from the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import routelearn

ROOT = Path(__file__).parents[1]
BY_COMMAND = "import sys; from routelearn.cli import main; main(sys.argv[1:])"


def python(*arguments: str, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env={**os.environ, **environment},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds nothing but the installed wheel; what it needs comes from the environment of the tests."""
    for name in ("build", "hatchling"):
        pytest.importorskip(name)
    if not (ROOT / "pyproject.toml").is_file():
        pytest.skip("not a checkout")
    folder = tmp_path_factory.mktemp("package")
    python("-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder / "dist"), str(ROOT), cwd=folder)
    [wheel] = (folder / "dist").glob("*.whl")
    python("-m", "pip", "install", "--no-deps", "--quiet", "--target", str(folder / "site"), str(wheel), cwd=folder)
    return folder / "site"


@pytest.mark.slow
def test_the_wheel_solves_an_example_with_its_own_models(installed: Path, tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        return python("-c", BY_COMMAND, *arguments, cwd=tmp_path, PYTHONPATH=str(installed))

    where = "import routelearn; print(routelearn.__file__)"
    assert python("-c", where, cwd=tmp_path, PYTHONPATH=str(installed)).startswith(str(installed))
    assert run("--version").split() == ["routelearn", routelearn.__version__]
    run("examples")
    assert "by the policy" in run("solve", "examples/deliveries.csv", "--capacity", "12", "--seconds", "0")
    assert run("models") == python("-c", BY_COMMAND, "models", cwd=tmp_path, PYTHONPATH=str(ROOT))


@pytest.mark.slow
def test_the_wheel_holds_what_the_checkout_ships_and_nothing_else(installed: Path) -> None:
    def files(folder: Path) -> set[str]:
        found = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
        return {name for name in found if "__pycache__" not in name}

    assert files(installed / "routelearn" / "examples") == files(ROOT / "examples")
    shipped = {name for name in files(installed / "routelearn") if not name.startswith("examples/")}
    assert shipped == files(ROOT / "routelearn")
    assert {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")} <= {"routelearn", "bin"}


def test_the_citation_names_this_version() -> None:
    assert f"\nversion: {routelearn.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {routelearn.__version__} (" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.slow
def test_the_quick_tests_are_found_where_nothing_optional_is_installed(tmp_path):
    """`make test` installs no extras; where all tests run they are there, and an import that needs one is overseen."""
    missing = ("fastapi", "pydantic", "uvicorn", "httpx", "playwright", "ray", "pyvrp", "ortools", "tensorboard")
    (tmp_path / "sitecustomize.py").write_text(f"import sys\nsys.modules.update(dict.fromkeys({missing!r}))\n")
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "not slow and not extra"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert found.returncode == 0, found.stdout[-2000:]

"""Write requirements/service.txt: what a service image installs, each file by its hash.

    make pins

Versions are those of constraints.txt; hashes are those of the files that pip chooses on this machine, so run it on the
platform of the image (Linux x86_64, the oldest Python that is supported).
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "requirements" / "service.txt"
HEAD = """\
# What the service needs, by hash: pip install --require-hashes --no-deps -r requirements/service.txt
# --extra-index-url https://download.pytorch.org/whl/cpu, then pip install --no-deps --no-build-isolation . (hatchling
# builds it). Made by `make pins` for {platform}.
# torch is the build for processors, which PyPI does not have (its own needs CUDA); an image with a GPU pins its own.
"""


def chosen() -> list[dict]:
    """What pip would install for the service, from its report."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--dry-run"]
        command += ["--ignore-installed", "--only-binary", ":all:", "--report", str(report), "-c", "constraints.txt"]
        subprocess.run([*command, ".[serve]"], cwd=ROOT, check=True)
        return json.loads(report.read_text())["install"]


def line(one: dict) -> str:
    name, version = one["metadata"]["name"].lower().replace("_", "-"), one["metadata"]["version"]
    return f"{name}=={version} --hash=sha256:{one['download_info']['archive_info']['hashes']['sha256']}"


def main() -> None:
    lines = sorted(line(one) for one in chosen() if "archive_info" in one["download_info"])  # all but the project
    python = ".".join(platform.python_version_tuple()[:2])
    head = HEAD.format(platform=f"{platform.system()} {platform.machine()}, Python {python}")
    TARGET.write_text(head + "\n".join(lines) + "\n")
    print(f"{TARGET.relative_to(ROOT)}: {len(lines)} packages")


if __name__ == "__main__":
    main()

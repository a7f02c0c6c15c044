# `make demo` and `make test` need only Python 3.11 or newer and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.ready

.PHONY: demo test lint bench clean

demo: $(SETUP)  ## set up, then run the main job on a bundled scenario
	$(BIN)/specplan predict toy-20ms
	$(BIN)/specplan simulate toy-20ms

test: $(SETUP)  ## set up, then run every check: lint, types, import direction, tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -q -n auto

bench: $(SETUP)  ## print the speed figures
	$(BIN)/python benchmarks/run.py

$(SETUP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[serve,cluster,images]' --group dev
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

# `make demo` and `make test` need only Python 3.11 or newer and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.ready
LOWEST := .venv-lowest
# What `make lowest` runs: neither pages in a browser nor the executed docs.
ROOMS := tests/models tests/scenarios tests/sim tests/results tests/cli

.PHONY: demo test lowest docs bench clean

demo: $(SETUP)  ## set up, then run the main job on a bundled scenario
	$(BIN)/specplan predict toy-20ms
	$(BIN)/specplan simulate toy-20ms

test: $(SETUP)  ## set up, then run every check: lint, types, import direction, tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -q -n auto

lowest:  ## run the tests at the lowest version of every dependency
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --upgrade pip
	$(PYTHON) .ci/lowest.py > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python -m pip install --quiet --constraint $(LOWEST)/constraints.txt \
		--editable '.[serve,cluster,images]' pytest pytest-xdist hypothesis ciw pint
	$(LOWEST)/bin/pytest -q -n auto -p no:cacheprovider -W ignore::DeprecationWarning $(ROOMS)

bench: $(SETUP)  ## print the speed figures
	$(BIN)/python benchmarks/run.py

docs: $(SETUP)  ## bring everything that is generated or executed in the docs up to date
	$(BIN)/python -m specplan.scenarios.reference docs/scenario.md
	$(BIN)/specplan validate --markdown docs/accuracy.md --force
	$(BIN)/python docs/build.py
	$(BIN)/python tests/cli/test_readme.py
	$(BIN)/python docs/picture.py

$(SETUP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[serve,cluster,images]' --group dev
	touch $@

clean:
	rm -rf $(VENV) $(LOWEST) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

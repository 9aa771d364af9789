# `make climb` shows this machine's CPU climbing the ladder; `make test` runs the tests; `make lint` checks the code.
# Each installs what it needs first. PYTHON=/path/to/python3.12 picks an interpreter for the virtual environment.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-dev
SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c '$(SUPPORTED)' 2>/dev/null && { echo $$p; exit; }; done; echo python3)

.PHONY: climb test lint tables install clean
.DEFAULT_GOAL := climb

climb: $(STAMP)
	$(BIN)/gemmlab climb

test: $(STAMP)
	$(BIN)/python -m pytest

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict
	$(BIN)/lint-imports

# Regenerate the tables and plots of README.md and docs/ from the records in benchmarks/results.
tables: $(STAMP)
	$(BIN)/python docs/build_tables.py

install: $(STAMP)

$(STAMP): pyproject.toml
	@python='$(PYTHON)'; "$$python" -c '$(SUPPORTED)' || { \
		echo "gemmlab needs Python 3.11 to 3.13, and '$$python' is $$("$$python" --version 2>&1 || true)." >&2; \
		echo "Name another one: make PYTHON=/path/to/python3.12" >&2; exit 1; }; \
	"$(BIN)/python" -c '$(SUPPORTED)' 2>/dev/null || "$$python" -m venv --clear $(VENV) || { \
		echo "No virtual environment could be made (on Debian and Ubuntu: apt install python3-venv)." >&2; exit 1; }
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --editable '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

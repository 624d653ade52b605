# Two commands for everyone: `make demo` and `make test`. `make check` is what contributors and .ci/run run.
PYTHON ?= python3
VERSIONS ?= 3.11 3.12 3.13
# Measuring coverage costs two fifths of the time before Python 3.12 and little from then on.
COVERAGE ?= $(shell $(PYTHON) -c 'import sys; print("--cov=deepwell" if sys.version_info >= (3, 12) else "")')
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-slow test-versions check lint types clean

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("deepwell needs Python 3.11 or newer, and this is " + sys.version) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

demo: $(STAMP)
	$(BIN)/deepwell demo --out demo

test: $(STAMP)
	$(BIN)/python -m pytest -q -n 2 $(COVERAGE)

test-slow: $(STAMP)
	$(BIN)/python -m pytest -q -m slow

# The tests under every version that is installed, each in an environment of its own.
test-versions:
	@ran=0; for version in $(VERSIONS); do \
	  if python$$version -c '' 2>/dev/null; then \
	    $(MAKE) test VENV=.venv-$$version PYTHON=python$$version COVERAGE= || exit 1; ran=$$((ran + 1)); \
	  else echo "python$$version is not installed, and is left out"; fi; \
	done; echo "$$ran versions of Python ran the tests"; test $$ran -ge 2

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

check: lint types test

clean:
	rm -rf $(VENV) .venv-* .coverage demo .pytest_cache .mypy_cache .ruff_cache

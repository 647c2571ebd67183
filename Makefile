# Two commands: `make demo` and `make test`. Both set up .venv on first use and are quick after.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev

# Processes that run tests: as many as there are cores.
WORKERS ?= auto

# Tests start many processes: without bytecode each of them would translate the sources again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-services test-spark test-slow nojit bench-check lint format docs wheel test-oldest test-newest integrations clean

help:
	@echo "make demo       train a private sparse classifier and print its guarantee"
	@echo "make test       set up everything and run the tests"
	@echo "make test-services  laws by many draws, long replays, and the tests that start a Dask cluster, a PostgreSQL server or a notebook"
	@echo "make test-spark  fits on a Spark cluster on this machine; needs Java"
	@echo "make test-slow  the heavier statistical and real-data tests"
	@echo "make nojit      the kernel tests with Numba's compiler switched off"
	@echo "make bench-check  ratios of speed against the committed table; fails beyond 30 %"
	@echo "make lint       ruff and mypy"
	@echo "make wheel      build sdist and wheel, check and use them in clean environments"
	@echo "make test-oldest  a fast selection of tests with the oldest supported versions"
	@echo "make test-newest  the same with the newest versions on another Python (NEWEST_PYTHON=python3.13)"
	@echo "make integrations  other tools with our estimators, in environments of their own; writes the table of docs/other_tools.md"
	@echo "make docs       the site, offline, warnings as errors: docs/_build/html/index.html"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml | $(BIN)/python
	@echo "installing into $(VENV): a minute or two, the first time alone"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[cli]"
	@touch $@

$(DEV_STAMP): pyproject.toml | $(BIN)/python
	@echo "installing into $(VENV) with all that tests need: some minutes, the first time alone"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $@ $(STAMP)

demo: $(STAMP)
	@MPLBACKEND=Agg $(BIN)/python examples/plot_01_first_model.py

# Neighbouring tests run on one worker (worksteal), so that the prices of a file are computed once.
test: $(DEV_STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow and not spark and not dask and not postgres and not heavy and not notebook" --durations=10

# What takes long, clusters of processes and a data base server: one file at a time on a core, because a file shares its servers.
test-services: $(DEV_STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "(dask or postgres or heavy or notebook) and not slow" --durations=10

# Spark, half a gigabyte of it for Java 17 or newer, in a folder beside the environment of all other tests.
SPARK := .venv-spark
$(SPARK)/.installed: $(DEV_STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --target $(SPARK) pyspark
	@touch $@

test-spark: $(SPARK)/.installed
	PYTHONPATH=$(abspath $(SPARK)) $(BIN)/python -m pytest -q -m "spark and not slow" tests/rows/test_spark.py

test-slow: $(DEV_STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) -m slow

nojit: $(DEV_STAMP)
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n $(WORKERS) -m nojit

bench-check: $(DEV_STAMP)
	cd experiments && ../$(BIN)/python -m lab speed

lint: $(DEV_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(DEV_STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

wheel: $(DEV_STAMP)
	$(BIN)/python .ci/check_wheel.py

# The newest versions are those of `make test`; here the oldest ones that pyproject.toml allows.
OLDEST := .venv-oldest
$(OLDEST)/.installed: pyproject.toml .ci/oldest.txt
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check -c .ci/oldest.txt -e ".[cli]" "pytest>=9" pytest-xdist pytest-timeout hypothesis mpmath pandas
	@touch $@

# Compiled code in a place of its own: Numba writes the index of its cache before the code, and another process could find that of a newer LLVM.
test-oldest: $(OLDEST)/.installed
	NUMBA_CACHE_DIR=$(abspath $(OLDEST))/numba $(OLDEST)/bin/python -m pytest -q -n $(WORKERS) tests/golden tests/test_domain.py tests/test_losses.py \
	  tests/methods/test_base.py tests/ledger/test_policy.py

# The newest libraries on another Python: make test-newest NEWEST_PYTHON=python3.13
NEWEST_PYTHON ?= python3.13
NEWEST := .venv-newest
$(NEWEST)/.installed: pyproject.toml
	$(NEWEST_PYTHON) -m venv $(NEWEST)
	$(NEWEST)/bin/python -m pip install --quiet --disable-pip-version-check -e ".[cli,plot,parquet]" "pytest>=9" pytest-xdist pytest-timeout hypothesis mpmath pandas polars
	@touch $@

test-newest: $(NEWEST)/.installed
	NUMBA_CACHE_DIR=$(abspath $(NEWEST))/numba $(NEWEST)/bin/python -m pytest -q -n $(WORKERS) tests/golden tests/test_domain.py tests/test_random.py tests/test_losses.py \
	  tests/methods/test_base.py tests/schema/test_missing_values.py tests/preprocessing/test_tables.py

# Takes minutes and some gigabytes: not part of CI.
integrations: $(DEV_STAMP)
	cd experiments && ../$(BIN)/python -m integrations --write

DOCS_STAMP := $(VENV)/.installed-docs
$(DOCS_STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	@touch $@

# Every example runs; unchanged ones are kept between builds. Pages are read anew (-E): the search index needs all of them.
docs: $(DOCS_STAMP)
	$(BIN)/python -m sphinx -E -b html -W --keep-going -q docs docs/_build/html
	$(BIN)/python docs/_ext/check_site.py docs/_build/html

clean:
	rm -rf $(VENV) $(OLDEST) .venv-newest* $(SPARK) build dist docs/_build docs/gallery docs/generated docs/book .pytest_cache .mypy_cache .ruff_cache .hypothesis

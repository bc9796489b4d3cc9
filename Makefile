# `make run` and `make test` do everything from a fresh clone: virtual environment, pinned install, then the job.
# A second call finds the stamp newer than the two files that decide what is installed, and starts at once.

EXPERIMENT ?= digits-gru
ARGS ?=
WORKERS ?= 2

SUPPORTED := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for python in python3.11 python3 python3.12 python3.13 python3.14; do \
	$$python -c '$(SUPPORTED)' 2>/dev/null && { echo $$python; break; }; done)

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed.stamp

.DEFAULT_GOAL := help
.PHONY: help run test soak coverage mutants prove users tests lint types docs clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo 'Variables: EXPERIMENT (make run), ARGS (run: options of circulant run; test, soak: of pytest), WORKERS (processes of the tests, each of 1.2 GB), PYTHON (3.11).'

run: $(STAMP)  ## train, quantize, generate, simulate and report EXPERIMENT (default digits-gru) into runs/
	@$(BIN)/circulant run $(EXPERIMENT) $(ARGS)

test: lint  ## lint, types, and the tests that a person waits for
	@$(MAKE) --no-print-directory -j 2 types tests

soak: lint  ## lint, types, and all tests, with many more examples of each property
	@$(MAKE) --no-print-directory -j 2 types tests SELECTION='-m "soak or not soak" --hypothesis-profile soak'

users: $(STAMP)  ## six users on a fresh environment with the wheel alone, and programs that users copy, each to a verified design
	@env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL $(BIN)/python -m pytest -n 0 -m soak tests/test_users.py \
		tests/test_docs.py tests/circulant/test_readme.py \
		'tests/test_zoo.py::test_an_example_is_exact_under_verilator[dpd_gru]' $(ARGS)

coverage: $(STAMP)  ## lines and branches that the tests reach, of ARGS or all, into build/coverage; it takes three times as long
	@rm -rf build/coverage && mkdir -p build/coverage
	@COVERAGE_PROCESS_START=pyproject.toml env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL $(BIN)/python -m coverage run -m pytest -n 0 $(ARGS)
	@$(BIN)/python -m coverage combine --quiet && $(BIN)/python -m coverage html --quiet -d build/coverage/html
	@$(BIN)/python -m coverage report --sort=cover | tail -40

mutants: $(STAMP)  ## a sample of 20 faults in a small GRU, and how many of them the checker finds
	@env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL $(BIN)/python -m pytest -n 0 -q -m soak tests/benchmarks/mutation/test_measure.py

prove: $(STAMP)  ## proofs of the stream units in every shape of twelve designs: all states that they can reach, under every input
	@$(BIN)/python -m pytest -q -n $(WORKERS) -m "soak or not soak" tests/hw/test_stream_proofs.py \
		tests/hw/test_bidirectional_proofs.py tests/hw/arith/test_decoder.py tests/hw/chips/test_link.py \
		tests/benchmarks/formal $(ARGS)

# A worker takes a whole file, whose designs and trainings are then made once; the dearest files come first.
SHARED := --dist loadfile --no-loadscope-reorder

# Beside mypy, which has one thread; a make that a test starts is none of this one, and the programs that tests start
# find their modules compiled.
tests: $(STAMP)
	@env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n $(WORKERS) $(SHARED) $(SELECTION) $(ARGS)

lint: $(STAMP)  ## ruff
	@$(BIN)/ruff check .

types: $(STAMP)  ## mypy
	@$(BIN)/mypy -p circulant -p benchmarks

docs: $(STAMP)  ## the documentation, into build/site
	@$(BIN)/python -c 'import material, mkdocstrings, mkdocs_click' 2>/dev/null || \
		$(BIN)/python -m pip install --quiet --no-input --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

$(STAMP): pyproject.toml constraints.txt
	@test -n '$(PYTHON)' && $(PYTHON) -c '$(SUPPORTED)' 2>/dev/null || \
		{ echo "Python 3.11 must be on the PATH; install it, or name it: make PYTHON=/path/to/python3.11" >&2; exit 2; }
	@for tool in g++ perl; do command -v $$tool >/dev/null || \
		{ echo "$$tool must be on the PATH: Verilator compiles its simulations with it; install $$tool" >&2; exit 2; }; done
	@echo "Installing into $(VENV); this happens once and takes a few minutes."
	@$(BIN)/python -c pass 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --no-input --disable-pip-version-check -c constraints.txt -e '.[all,dev]'
	@touch $@

clean:  ## remove what was installed and cached, but no runs
	rm -rf $(VENV) build *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

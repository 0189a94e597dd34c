# Needs python3 (3.11 or later), make and a C compiler; everything else is set up here, in .venv.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
PORT ?= 8080
N ?= 1000

BIN := .venv/bin
PY := $(BIN)/python
STAMP := .venv/.set-up
SOURCES := extender tests $(wildcard loadtest bench)
PIP := $(PY) -m pip --disable-pip-version-check install --quiet
COMPILE := build/lock/bin/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11
QUICK := not controlplane and not oracle and not slow

.PHONY: help setup demo serve test check lint types imports unit bench load fuzz lock clean

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Set up anew only when a lock or pyproject.toml has changed; an interrupted set-up leaves no stamp.
$(STAMP): requirements-dev.lock requirements-build.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "python3 is %d.%d here; Berth needs 3.11 or later (make PYTHON=...)" % sys.version_info[:2])'
	@started=$$SECONDS; echo "setting up .venv ..."; \
	test -x $(PY) || $(PYTHON) -m venv .venv; \
	$(PIP) --require-hashes -r requirements-dev.lock; \
	$(PIP) --require-hashes -r requirements-build.lock; \
	$(PIP) --no-deps --no-build-isolation --editable .; \
	touch $@; \
	echo "setting up .venv: $$((SECONDS - started)) s"

setup: $(STAMP) ## Make .venv with the command .venv/bin/berth

demo: setup ## Play a workload against a bundled fleet and print what happened
	@$(BIN)/berth demo

serve: setup ## Serve the bundled fleet on PORT (8080) until stopped
	@$(BIN)/berth serve --embedded --port $(PORT)

test: setup ## Run everything, on a real control plane too (its first build takes minutes)
	@PYTHON=$(PY) .ci/parts

check: setup lint types imports unit ## Lint, types, imports and unit tests, in under 90 s

lint: setup
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .

types: setup
	$(BIN)/mypy $(SOURCES)

imports: setup
	$(BIN)/lint-imports --no-logo

unit: setup
	$(PY) -m pytest -q -n 3 --dist loadfile -m "$(QUICK)"

bench: setup ## Measure speed and memory against the budgets, into build/bench.json
	@$(PY) -m bench

load: setup ## Play a kube-scheduler against a server on this machine, into build/load.md
	@$(PY) -m loadtest.run

fuzz: setup ## Compare N random cases with Kubernetes' own allocator and selectors
	@$(PY) -m tests.oracle.build
	$(PY) -m tests.oracle.fuzz --count $(N)

lock: setup ## Make the hashed requirements locks anew from pyproject.toml
	@test -x build/lock/bin/uv || { $(PYTHON) -m venv build/lock && build/lock/bin/python -m pip --disable-pip-version-check install --quiet uv; }
	$(COMPILE) --output-file requirements.lock pyproject.toml
	$(COMPILE) --output-file requirements-dev.lock --group dev pyproject.toml
	$(PY) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], "editables", sep="\n")' | $(COMPILE) --constraints requirements-dev.lock --output-file requirements-build.lock -

clean: ## Remove .venv, build/ and the tools' caches
	rm -rf .venv build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Every chore of the project. `make help` lists them; `make run` and `make test` set up all they need.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST := $(BIN)/pytest --color=no --hypothesis-profile=ci

.PHONY: help setup run test check bench faults docs clean java

help: ## list the chores
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/make \1	\2/' | expand -t 14

setup: java $(READY) ## make the virtual environment and check for Java

run: setup ## explain the car accident example
	@$(BIN)/estream explain ceq_specs/car_adn.yaml

test: setup ## run every test
	@.ci/postgres
	@$(PYTEST)

check: $(READY) ## lint, format, types, layers, documentation
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy --strict estream
	@$(BIN)/lint-imports
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: $(READY) ## measure the event core
	@$(BIN)/python -m benchmarks.core

faults: $(READY) ## kill rules at work 30 times and see that nothing is lost
	@$(BIN)/python benchmarks/faults.py --kills 30

docs: $(READY) ## serve the documentation at http://127.0.0.1:8000
	@$(BIN)/mkdocs serve

clean: ## remove what the other chores made
	@rm -rf $(VENV) site dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache spark-warehouse

$(READY): pyproject.toml constraints.txt
	@.ci/python $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

java:
	@.ci/java

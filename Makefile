# `make help` lists the targets. Everything runs in .venv, which is made on first use from constraints.txt.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(INSTALLED) ## make .venv and install headcount into it

$(INSTALLED): setup.cfg pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[test]'
	touch $@

test: install quality ## set everything up, check style, run all tests
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

study: install ## set everything up, run the whole study and write runs/study/report.html
	$(BIN)/headcount study --output runs/study

quality: install ## check formatting and lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

style: install ## format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: install ## measure speed, side by side with peers
	@for script in benchmarks/attention.py benchmarks/data.py benchmarks/ablation.py benchmarks/stock_ablation.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

clean: ## remove .venv and caches
	rm -rf .venv build *.egg-info .pytest_cache .ruff_cache .hypothesis

.PHONY: help install test study quality style bench clean
.DEFAULT_GOAL := help

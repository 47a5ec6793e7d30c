# `make help` lists the targets. Everything runs in .venv, which is made on first use from constraints.txt; only the
# benchmarks have .venv-bench, with the peers that headcount is compared with.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed
BENCH := .venv-bench
TYPES := build/types
ROOMS := $(filter-out headcount/,$(dir $(wildcard */__init__.py)))

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

storm: install ## try to break it for about 10 minutes, at most 14: kills, nonsense, broken files, a full disk, a hostile Hub
	$(BIN)/python tests/storm/run.py --minutes 14

coverage: install ## try a tiny model of every architecture of transformers, about 25 minutes; writes docs/coverage.md
	$(BIN)/python -W ignore tests/coverage/try_all.py --output build/coverage.jsonl
	$(BIN)/python tests/coverage/page.py build/coverage.jsonl

quality: install ## check formatting, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
# mypy wants the package in one folder: links to the files of headcount/ and to the rooms, which lie beside it.
	rm -rf $(TYPES) && mkdir -p $(TYPES)/headcount
	cd $(TYPES)/headcount && ln -s ../../../headcount/*.* $(ROOMS:%/=../../../%) .
	cd $(TYPES) && ../../$(BIN)/mypy --config-file ../../setup.cfg --cache-dir ../../.mypy_cache --package headcount

style: install ## format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(BENCH)/installed ## measure speed side by side with peers, at most 20 minutes; writes docs/benchmarks.md
	$(BENCH)/bin/python benchmarks/peers.py
	$(BENCH)/bin/python benchmarks/run.py; status=$$?; $(BENCH)/bin/python benchmarks/table.py && exit $$status

$(BENCH)/installed: setup.cfg pyproject.toml constraints.txt benchmarks/peers.txt
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

clean: ## remove .venv and caches
	rm -rf .venv .venv-bench build *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis

.PHONY: help install test study storm coverage quality style bench clean
.DEFAULT_GOAL := help

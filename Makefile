# Two commands do all the set-up on a fresh machine with Python, git and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := build/demo

.DEFAULT_GOAL := help
.PHONY: help docs demo test test-action bench bench-quick lint types unit format clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/ready: pyproject.toml requirements/dev.txt requirements/runtime.txt examples/requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements/dev.txt -c requirements/runtime.txt -e .
	@touch $@

demo: $(VENV)/ready  ## Export a run from the example's retriever, check it, show where the reports are
	@mkdir -p $(DEMO)
	$(BIN)/python examples/export_retrieval_run.py --out $(DEMO)/current_run.jsonl
	$(BIN)/rag-contract check --golden examples/golden.jsonl --run $(DEMO)/current_run.jsonl \
		--baseline examples/baseline.json --config examples/ragcontract.yml \
		--report-md $(DEMO)/report.md --report-json $(DEMO)/report.json --junit $(DEMO)/junit.xml \
		--report-html $(DEMO)/report.html
	@echo "Reports: $(DEMO)/report.md, $(DEMO)/report.json, $(DEMO)/junit.xml, $(DEMO)/report.html"

test: lint types unit  ## Run linters, type checker and tests

lint: $(VENV)/ready  ## Check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/check-jsonschema --builtin-schema vendor.github-actions action.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml examples/*workflow*.yml ragcontract/templates/workflow.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/zizmor --offline --quiet .github

types: $(VENV)/ready  ## Check types
	$(BIN)/mypy

unit: $(VENV)/ready  ## Run the tests with coverage
	$(BIN)/pytest -m "not container" -n auto --dist loadgroup --cov --cov-report=term

test-action: $(VENV)/ready  ## Build the action's image and run it as a runner would (needs a Docker engine)
	$(BIN)/pytest -m container

bench: $(VENV)/ready  ## Measure time and memory beside other tools and write docs/performance.md
	$(BIN)/python -m benchmarks

bench-quick: $(VENV)/ready  ## Compare what a check costs over the floor with the stored ratios
	$(BIN)/python -m benchmarks --quick

docs: $(VENV)/ready  ## Write the parts of the documents that are made from the code
	$(BIN)/python -m scripts.docs

format: $(VENV)/ready  ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## Remove what the commands above made
	rm -rf $(VENV) build .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage*

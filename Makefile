# Two commands do all the set-up on a fresh machine with Python, git and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := build/uv
ORACLES := build/oracles
EVALUATORS := build/evaluators
RECORD := build/record
SITE := build/site-tools
DEMO := build/demo
DEMO_BIN := $(DEMO)/venv/bin

.DEFAULT_GOAL := help
.PHONY: help docs site requirements environments demo test test-action rehearse-release test-record test-oracles bench bench-quick bench-growth bench-record fuzz lint types unit format clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

$(VENV)/ready: pyproject.toml requirements/dev.txt requirements/runtime.txt examples/requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements/dev.txt -c requirements/runtime.txt -e .
	@touch $@

$(UV)/ready: requirements/uv.txt
	$(PYTHON) -m venv $(UV)
	$(UV)/bin/pip install --quiet --disable-pip-version-check -r requirements/uv.txt
	@touch $@

$(ORACLES)/ready: requirements/oracles.txt
	@echo "Setting up $(ORACLES) (once, about two minutes) ..."
	@$(PYTHON) -m venv $(ORACLES)
	@$(ORACLES)/bin/pip install --quiet --disable-pip-version-check --no-deps -r requirements/oracles.txt
	@touch $@

$(EVALUATORS)/ready: requirements/evaluators.txt
	@echo "Setting up $(EVALUATORS) (once, about two minutes) ..."
	@$(PYTHON) -m venv $(EVALUATORS)
	@$(EVALUATORS)/bin/pip install --quiet --disable-pip-version-check --no-deps -r requirements/evaluators.txt
	@touch $@

$(RECORD)-%/ready: pyproject.toml requirements/record-%.txt $(UV)/ready
	@echo "Setting up $(@D) (once, less than a minute) ..."
	@$(PYTHON) -m venv --clear --without-pip $(@D)
	@$(UV)/bin/uv pip install --quiet --no-config --python $(@D)/bin/python --no-deps -r requirements/record-$*.txt -e .
	@touch $@

$(SITE)/ready: requirements/site.txt
	@echo "Setting up $(SITE) (once, less than a minute) ..."
	@$(PYTHON) -m venv $(SITE)
	@$(SITE)/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/site.txt
	@touch $@

$(DEMO)/venv/ready: pyproject.toml requirements/runtime.txt examples/requirements.txt
	@echo "Setting up $(DEMO)/venv (once) ..."
	@$(PYTHON) -m venv $(DEMO)/venv
	@$(DEMO_BIN)/pip install --quiet --disable-pip-version-check --no-compile \
		-r examples/requirements.txt -c requirements/runtime.txt -e .
	@touch $@

environments: $(VENV)/ready $(DEMO)/venv/ready $(ORACLES)/ready $(EVALUATORS)/ready $(RECORD)-floor/ready $(RECORD)-newest/ready $(SITE)/ready  ## Install what all of these commands need

# $(call demo_run,FOLDER,RETRIEVER,CODE): record what the example's retriever finds, check it, expect that exit code.
define demo_run
	@mkdir -p $(DEMO)/$(1)
	@$(DEMO_BIN)/rag-contract record examples/search.py:$(2) --golden examples/golden.jsonl \
		--config examples/ragcontract.yml --out $(DEMO)/$(1)/current_run.jsonl
	@echo
	@$(DEMO_BIN)/rag-contract check --golden examples/golden.jsonl --run $(DEMO)/$(1)/current_run.jsonl \
		--baseline examples/baseline.json --config examples/ragcontract.yml \
		--report-md $(DEMO)/$(1)/report.md --report-json $(DEMO)/$(1)/report.json \
		--junit $(DEMO)/$(1)/junit.xml --report-html $(DEMO)/$(1)/report.html; code=$$?; \
	if [ $$code -ne $(3) ]; then echo "make demo: this check exits $$code, expected $(3)" >&2; exit 1; fi
endef

demo: $(DEMO)/venv/ready  ## Check two runs of the example's retriever, one good and one broken, and show the reports
	@printf '\n# 1. A good run: the retriever as it is\n\n'
	$(call demo_run,good,full,0)
	@printf '\n# 2. A broken run: a pull request that makes the index smaller and faster to build\n\n'
	$(call demo_run,broken,lean,1)
	@printf '\n# What happened\n\n'
	@echo "The contract held for the first run: exit code 0, the pull request may be merged."
	@echo "It broke on the second: exit code 1, the pull request is stopped."
	@printf '\n# Where the reports are\n\n'
	@for run in good broken; do echo "$(DEMO)/$$run/report.html, and report.md, report.json and junit.xml beside it"; done
	@echo "examples/README.md says what went wrong in the second run, and why."

test: lint types unit  ## Run linters, type checker and tests

lint: $(VENV)/ready  ## Check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/check-jsonschema --builtin-schema vendor.github-actions action.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml examples/*workflow*.yml examples/recipes/*workflow*.yml ragcontract/templates/workflow.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.gitlab-ci examples/recipes/gitlab-ci.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/zizmor --pedantic --offline --quiet .github action.yml
	$(BIN)/zizmor --pedantic --offline --quiet --config examples/zizmor.yml examples/*workflow*.yml examples/recipes/*workflow*.yml ragcontract/templates/workflow.yml

types: $(VENV)/ready  ## Check types
	$(BIN)/mypy

unit: $(VENV)/ready  ## Run the tests; with COVERAGE=1 at least 95 % of the code must run, which takes twice as long
	@# Hundreds of tests start a process, and each worker reads all tests: let Python keep what it compiles.
	PYTHONDONTWRITEBYTECODE= TMPDIR=$$($(BIN)/python -m tests.scratch) $(BIN)/pytest -m "not container and not record and not oracles" -n auto --dist worksteal $(if $(COVERAGE),--cov --cov-report=term)

test-action: $(VENV)/ready  ## Build the action's image and run it as a runner would (needs a Docker engine)
	$(BIN)/pytest -m container

rehearse-release: $(VENV)/ready  ## Release twice in a copy of the repository, upgrade, roll back (its image needs a Docker engine)
	@$(BIN)/python -m scripts.rehearse

test-record: $(RECORD)-floor/ready $(RECORD)-newest/ready  ## Record LangChain, LlamaIndex and Chroma, the oldest versions and the newest
	$(RECORD)-floor/bin/python -m pytest -m record -W ignore tests/record/frameworks
	$(RECORD)-newest/bin/python -m pytest -m record -W ignore tests/record/frameworks tests/record/instrumented

test-oracles: $(VENV)/ready $(ORACLES)/ready $(EVALUATORS)/ready  ## Compare metrics and verdicts with the packages that users know
	$(BIN)/pytest -m oracles

bench: $(VENV)/ready  ## Measure time and memory beside other tools and write docs/background/performance.md
	$(BIN)/python -m benchmarks

bench-quick: $(VENV)/ready  ## Compare what a check costs over the floor with the stored ratios, and how it grows
	$(BIN)/python -m benchmarks --quick

bench-growth: $(VENV)/ready  ## Measure how a check grows with its largest inputs and write docs/contributing/growth.md
	$(BIN)/python -m benchmarks.growth

bench-record: $(VENV)/ready  ## Measure how fast and how large a recording is and write docs/background/performance.md
	$(BIN)/python -m benchmarks.recording

fuzz: $(VENV)/ready  ## Check made-up inputs for SECONDS (60), as of SEED (0); tests/fuzz/corpus gets those that fail
	$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS),60) --jobs 2 --seed $(or $(SEED),0)

docs: $(VENV)/ready  ## Write the parts of the documents that are made from the code
	$(BIN)/python -m scripts.docs

site: $(SITE)/ready  ## Build the site into build/site; a link that leads nowhere or a request to another host fails
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/python -m mkdocs build --strict
	$(SITE)/bin/python -m scripts.site build/site

requirements: $(VENV)/ready $(UV)/ready  ## Lock what wheel, image and site are made from: hashes and the base
	$(BIN)/python -m scripts.requirements --uv $(UV)/bin/uv

format: $(VENV)/ready  ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## Remove what the commands above made
	rm -rf $(VENV) build .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage*

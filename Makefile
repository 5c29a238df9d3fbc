# Every target sets up what it needs: Python 3.11+, git and make are enough.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CHECKS := $(VENV)/.checks

LOCK_TOOLS := .tools
UV_VERSION := 0.13.8
LOCK := $(LOCK_TOOLS)/bin/uv pip compile pyproject.toml --universal --python-version 3.11 \
	--generate-hashes --quiet --custom-compile-command "make lock" $(if $(UPGRADE),--upgrade)

.DEFAULT_GOAL := help
.PHONY: help setup run demo test bench lint format lock clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## create or update .venv from the lock file

run: $(READY) ## start the service
	@$(BIN)/lacuna serve $(ARGS)

demo: $(READY) ## start the service with simulated traffic
	@$(BIN)/lacuna demo $(ARGS)

test: $(CHECKS) ## run the tests; ARGS="-k name" narrows them
	@$(BIN)/python -m pytest $(ARGS)

bench: $(READY) ## measure speed and regret against peers
	@$(BIN)/python -m benchmarks $(ARGS)

lint: $(READY) ## check style, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy service clients

format: $(READY) ## rewrite files into the agreed style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: $(LOCK_TOOLS)/uv-$(UV_VERSION) ## resolve the lock files anew; UPGRADE=1 takes newer versions
	$(LOCK) --output-file requirements/runtime.lock
	$(LOCK) --extra clients --constraints requirements/runtime.lock \
		--output-file requirements/clients.lock
	$(LOCK) --extra dev --constraints requirements/clients.lock --output-file requirements/dev.lock
	$(LOCK) --extra dev --extra checks --constraints requirements/dev.lock \
		--output-file requirements/checks.lock

clean: ## remove what these targets made
	rm -rf $(VENV) $(LOCK_TOOLS) .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
	find service -name '*.nb[ic]' -delete

$(READY): requirements/dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Lacuna needs Python 3.11 or newer; set PYTHON=python3.x")'
	@rm -f $@
	@$(BIN)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	@echo "Installing into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements/dev.lock
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m pip check
	@touch $@

# Only the tests need these: whoever wants to run the service should not wait for them.
$(CHECKS): $(READY) requirements/checks.lock
	@echo "Installing what the tests need besides ..."
	@$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements/checks.lock
	@$(BIN)/python -m pip check
	@touch $@

$(LOCK_TOOLS)/uv-$(UV_VERSION):
	@$(PYTHON) -m venv --clear $(LOCK_TOOLS)
	@$(LOCK_TOOLS)/bin/python -m pip install --quiet uv==$(UV_VERSION)
	@touch $@

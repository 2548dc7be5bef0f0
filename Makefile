# make demo and make test do all the set-up they need. `make help` lists the rest.

.DEFAULT_GOAL := help
BIN := .venv/bin

.PHONY: help
help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

.PHONY: setup
setup: .venv/.ready ## Build .venv and fetch the JVM parts (demo and test do it by themselves)

.venv/.ready: requirements.lock pyproject.toml deploy/ivy.xml deploy/setup.sh
	@deploy/setup.sh

.PHONY: demo
demo: setup ## Start a real Kafka, make trouble in its groups, and watch the monitor name who did it
	@$(BIN)/rebalance-monitor demo $(ARGS)

.PHONY: test
test: setup lint ## Run every check and every test; a few minutes on two cores
	@$(BIN)/python -m pytest $(ARGS)

.PHONY: lint
lint: setup ## Style and types
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy

.PHONY: lock
lock: ## Write requirements.lock anew (needs uv)
	@uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes \
	    --no-emit-index-url --no-emit-find-links --upgrade --quiet -o requirements.lock

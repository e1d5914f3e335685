# Every verb works as the first command on a fresh clone: each makes the environment it needs.
#
#   PYTHON    the interpreter that makes the environment (3.11 or newer)
#   VENV      where the environment lives
#   WORKERS   how many processes run the tests
#   EXAMPLES  how many random examples each soak test tries
#   SEED      the seed of the first of them, where they are numbered
#   JAVA      the package that brings Java where it is missing
#   ARGS      passed on to zodiac demo, pytest and the bench programs

PYTHON   ?= python3
VENV     ?= .venv
WORKERS  ?= auto
EXAMPLES ?= 50000
SEED     ?= 2000000
ARGS     ?=

BIN     := $(VENV)/bin
STAMP   := $(VENV)/.installed
LOCK    := requirements/lock.txt
PIP     := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet
PYTEST  := $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup
UV      ?= $(firstword $(wildcard $(BIN)/uv) uv)
JAVA    ?= openjdk-17-jre-headless

.DEFAULT_GOAL := help
.PHONY: help setup demo test check bench docs soak lock clean java

help: ## show this list
	@sed -n 's/^\([a-z]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r verb text; do \
		printf '  make %-7s %s\n' "$$verb" "$$text"; done

setup: $(STAMP) ## make the environment and install the locked dependencies

# Without Java the demo says so, and plays on without Spark.
demo: $(STAMP) ## the wind farm of the paper, end to end
	@$(MAKE) --no-print-directory java 2>/dev/null || true
	@$(BIN)/zodiac demo $(ARGS)
	@$(BIN)/zodiac demo --fleet $(ARGS)

test: $(STAMP) java ## all tests but the soak runs
	@ZODIAC_NEEDS_JAVA=1 $(PYTEST) $(ARGS)

check: $(STAMP) ## lint, format, types, import contract, fast tests
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST) -m "not slow and not soak" $(ARGS)

bench: $(STAMP) ## compare with the committed results, as ratios to a peer of the same run
	@$(BIN)/zodiac bench quick $(ARGS)

# Without --quiet, which would hide the warnings from --strict as well.
docs: $(STAMP) ## build the documentation into site/; a warning is an error
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

soak: $(STAMP) ## the long random runs: make soak EXAMPLES=50000
	@ZODIAC_EXAMPLES=$(EXAMPLES) ZODIAC_SEED=$(SEED) $(PYTEST) -m soak $(ARGS)

lock: ## pin the dependencies again (needs uv); LOCK_FLAGS=--upgrade takes newer ones
	@$(UV) pip compile pyproject.toml requirements/build.in --extra dev \
		--universal --python-version 3.11 --generate-hashes --no-header --no-config --quiet \
		$(LOCK_FLAGS) --output-file $(LOCK)
	@{ printf '%s\n' \
		'# Every dependency with its version and the hashes of its files, for Python 3.11 and newer on any system.' \
		'# Made by `make lock` from pyproject.toml and requirements/build.in; not edited by hand.'; \
		cat $(LOCK); } > $(LOCK).new
	@mv $(LOCK).new $(LOCK)

clean: ## remove what the other verbs made, the environment too
	rm -rf $(VENV) site build dist out .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

# Spark runs on Java. On Debian and the like root gets it; others are told how.
java:
	@command -v java >/dev/null || [ -x "$$JAVA_HOME/bin/java" ] || { \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo "Installing Java, which Spark needs ..."; \
			apt-get update -qq && apt-get install -y -qq --no-install-recommends $(JAVA) >/dev/null; \
		else \
			echo "Spark needs Java 17 or newer: sudo apt-get install $(JAVA) (or your system's package)." >&2; \
			exit 1; \
		fi; }

$(STAMP): $(LOCK) pyproject.toml bench/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "ZodiacEdge needs Python 3.11 or newer: name one with make PYTHON=python3.12 (or whatever yours is called)." >&2; \
		exit 1; }
	@echo "Installing the locked dependencies into $(VENV) (a minute or so, only when they change) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --require-hashes --requirement $(LOCK)
	@$(PIP) install --no-deps --no-build-isolation --editable . --editable ./bench
	@$(BIN)/zodiac warm || true
	@$(BIN)/python -m compileall -q src/zodiacedge
	@touch $@

# Every target calls its tools directly, so the same commands serve people, hooks and CI.

PYTHON ?= python3
AGENTS ?= 2
SEEDS ?= 30
KINDS ?=
B ?=
T ?= tests
# Most tests wait for processes, not for a CPU. On a machine that is too slow for so many at once, a test may time out;
# it is then rerun on its own. Tests that look for a lost or duplicated row are not.
TEST_PROCESSES ?= 3
PYTEST = $(BIN)/python -m pytest -rs
# What the tests of a file share, such as a cluster, is started once, and files begin in order: the short ones are last.
SIDE_BY_SIDE = -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
SETUP_LOG := $(VENV)/setup.log

# An environment contains absolute paths: in a moved or copied checkout it would silently run the old one's code.
ifneq ($(shell cat $(READY) 2>/dev/null),$(CURDIR))
.PHONY: $(READY)
endif

# Other systems, with which the benchmarks compare ours.
RIVALS_VENV := .venv-rivals

# What looks at our dependencies is apart from them.
AUDIT_VENV := .venv-audit
SBOM := build/parallelrun.cdx.json
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)

# Helm, and the schemas of Kubernetes.
CHART_VENV := .venv-chart

# Object stores that tests start: their libraries are older ones of some that we use.
OBJECT_SERVERS := .venv-object-servers

# The web page: what it is built with, and what drives a browser in its tests.
STUDIO := studio
STATIC := services/api/parallelrun_api/studio/static
BROWSER := .venv-browser

# Azure ML's own client, in releases of several years, each in an environment of its own.
AZURE_CLIENTS := 1.35.2 1.23.1 1.12.1
AZURE_VENVS := .venv-azure-client
AZURE_READY := $(AZURE_CLIENTS:%=$(AZURE_VENVS)/%/ready)

# What the tests need beside .venv.
TESTS_READY := $(OBJECT_SERVERS)/ready $(OBJECT_SERVERS)/node/ready $(STUDIO)/node_modules/ready $(BROWSER)/ready chromium

LOCK_VENV := .venv-lock
UV_COMPILE = UV_SYSTEM_CERTS=1 $(LOCK_VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 \
	--fork-strategy fewest --generate-hashes --no-annotate --no-header --no-config

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: setup
setup: $(READY) ## Create the environment in .venv (PYTHON=python3.12 to choose the interpreter)
	@:

# pip would compile on one core, and the test suites of all libraries, too: half of the time that a set-up took.
$(READY): requirements/dev.txt pyproject.toml
	@command -v $(PYTHON) >/dev/null || \
		{ echo "make setup: '$(PYTHON)' not found; name a Python 3.11 or newer, as in: make setup PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "make setup: ParallelRun needs Python 3.11 or newer, '$(PYTHON)' is $$($(PYTHON) --version 2>&1); name another, as in: make setup PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "make setup: '$(PYTHON)' lacks the venv module; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo "Setting up $(VENV) (about half a minute the first time)"
	@rm -f $(READY)
	@mkdir -p $(VENV)
	@{ $(PYTHON) -m venv $(VENV) && \
		$(BIN)/python -m pip install --disable-pip-version-check --no-compile --require-hashes -r requirements/dev.txt && \
		$(BIN)/python -m pip install --disable-pip-version-check --no-deps --no-build-isolation --editable . && \
		{ $(BIN)/python -m compileall -q -j 0 -x '/tests?/' $(VENV)/lib || true; } ; \
	} >$(SETUP_LOG) 2>&1 || { tail -n 30 $(SETUP_LOG); echo "make setup: failed; the whole log is in $(SETUP_LOG)"; exit 1; } >&2
	@echo "$(CURDIR)" >$(READY)

# Each of them takes one core, or waits for the network: as many at once as `-j` says.
.PHONY: environments
environments: setup $(AUDIT_VENV)/ready $(AZURE_READY) $(TESTS_READY) ## Create whatever other targets would when they need it (-j 3)
	@:

.PHONY: run
run: setup ## Run the main example job: classify handwritten digits
	@$(BIN)/python examples/digits/main.py

.PHONY: test
test: setup $(TESTS_READY) ## Run all tests (T=tests/unit for a part)
	@$(PYTEST) --durations=5 $(SIDE_BY_SIDE) -m "not docker and not chaos" $(T) || case $$? in \
		5) ;; \
		1) echo "make test: rerunning the failed tests, one at a time" && \
			$(PYTEST) --last-failed --last-failed-no-failures none -m "not docker and not chaos" $(T) ;; \
		*) exit 1 ;; \
	esac
	@$(PYTEST) -n $(TEST_PROCESSES) -m "chaos and not docker" $(T) || [ $$? -eq 5 ]  # 5: none of those in this part
	@$(PYTEST) -m docker $(T) || [ $$? -eq 5 ]

$(OBJECT_SERVERS)/ready: requirements/object-servers.txt
	@echo "Setting up $(OBJECT_SERVERS) (about half a minute the first time)"
	@rm -f $@
	@mkdir -p $(OBJECT_SERVERS)
	@{ $(PYTHON) -m venv $(OBJECT_SERVERS) && \
		$(OBJECT_SERVERS)/bin/python -m pip install --disable-pip-version-check --no-compile --require-hashes -r requirements/object-servers.txt ; \
	} >$(OBJECT_SERVERS)/setup.log 2>&1 || \
		{ tail -n 30 $(OBJECT_SERVERS)/setup.log; echo "make: failed; the whole log is in $(OBJECT_SERVERS)/setup.log"; exit 1; } >&2
	@touch $@

# Where npm is missing, the tests that need it are skipped, but not in CI.
$(OBJECT_SERVERS)/node/ready: requirements/azurite/package-lock.json | $(OBJECT_SERVERS)/ready
	@if command -v npm >/dev/null || [ -n "$$CI" ]; then \
		echo "Setting up Azure's object store in $(@D) (about half a minute the first time)" && \
		rm -f $@ && mkdir -p $(@D) && cp requirements/azurite/package*.json $(@D) && \
		{ (cd $(@D) && npm ci --ignore-scripts --no-bin-links --no-audit --no-fund) >$(@D)/setup.log 2>&1 || \
			{ tail -n 30 $(@D)/setup.log; echo "make: failed; the whole log is in $(@D)/setup.log"; exit 1; } >&2; } && \
		touch $@; \
	fi

.PHONY: studio
studio: $(STUDIO)/node_modules/ready ## Build the web page (needs npm); what is built is committed
	@cd $(STUDIO) && node_modules/.bin/tsc --noEmit && node build.mjs ../$(STATIC)

# Where npm is missing, the tests that need it are skipped, but not in CI.
$(STUDIO)/node_modules/ready: $(STUDIO)/package-lock.json
	@if command -v npm >/dev/null || [ -n "$$CI" ]; then \
		echo "Setting up $(@D) (some seconds the first time)" && \
		mkdir -p build && { (cd $(STUDIO) && npm ci --ignore-scripts --no-audit --no-fund) >build/studio-setup.log 2>&1 || \
			{ tail -n 30 build/studio-setup.log; echo "make: failed; the whole log is in build/studio-setup.log"; exit 1; } >&2; } && \
		touch $@; \
	fi

$(BROWSER)/ready: requirements/browser.txt
	@echo "Setting up $(BROWSER) (some seconds the first time)"
	@rm -f $@
	@mkdir -p $(BROWSER)
	@{ $(PYTHON) -m venv $(BROWSER) && \
		$(BROWSER)/bin/python -m pip install --disable-pip-version-check --no-compile --require-hashes -r requirements/browser.txt ; \
	} >$(BROWSER)/setup.log 2>&1 || \
		{ tail -n 30 $(BROWSER)/setup.log; echo "make: failed; the whole log is in $(BROWSER)/setup.log"; exit 1; } >&2
	@touch $@

# Where there is no Chromium, the tests of the web page are skipped, but not in CI.
.PHONY: chromium
chromium:
	@if [ -n "$$CI" ] && ! command -v chromium >/dev/null && [ "$$(id -u)" = 0 ]; then \
		echo "Installing Chromium" && mkdir -p build && \
		{ { apt-get update && apt-get install --yes --no-install-recommends chromium; } >build/chromium.log 2>&1 || \
			{ tail -n 30 build/chromium.log; echo "make: failed; the whole log is in build/chromium.log"; exit 1; } >&2; }; \
	fi

.PHONY: check
check: setup ## Lint, types, contracts and tests
	@for phase in lint types contracts test; do \
		start=$$(date +%s); \
		$(MAKE) --no-print-directory $$phase || exit 1; \
		echo "check: $$phase passed in $$(( $$(date +%s) - start )) s"; \
	done

.PHONY: lint
lint: setup ## Check style and layout of the code
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

.PHONY: fmt
fmt: setup ## Format the code and fix what can be fixed safely
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

.PHONY: types
types: setup ## Check types
	@$(BIN)/mypy

.PHONY: contracts
contracts: setup ## Check which package imports which
	@$(BIN)/lint-imports --no-logo

.PHONY: bench
bench: setup ## Measure on this machine (B=noop for one benchmark)
	@$(BIN)/python -m benchmarks $(B)

.PHONY: bench-full
bench-full: setup ## Measure everything, at full size
	@$(BIN)/python -m benchmarks --full $(B)

.PHONY: bench-rivals
bench-rivals: setup $(RIVALS_VENV)/ready ## Compare with Ray, Celery and joblib, at full size
	@$(BIN)/python -m benchmarks --full $(or $(B),noop hashing)

$(RIVALS_VENV)/ready: benchmarks/rivals/requirements.txt
	@echo "Setting up $(RIVALS_VENV) (about a minute the first time)"
	@rm -f $@
	@mkdir -p $(RIVALS_VENV)
	@{ $(PYTHON) -m venv $(RIVALS_VENV) && \
		$(RIVALS_VENV)/bin/python -m pip install --disable-pip-version-check --require-hashes -r benchmarks/rivals/requirements.txt ; \
	} >$(RIVALS_VENV)/setup.log 2>&1 || \
		{ tail -n 30 $(RIVALS_VENV)/setup.log; echo "make: failed; the whole log is in $(RIVALS_VENV)/setup.log"; exit 1; } >&2
	@touch $@

.PHONY: audit
audit: $(AUDIT_VENV)/ready ## Look for known vulnerabilities in what is installed
	@$(AUDIT_VENV)/bin/python -m supply_chain.audit requirements/dev.txt requirements/audit.txt

.PHONY: sbom
sbom: $(AUDIT_VENV)/ready ## List what the images contain, as CycloneDX in build/
	@mkdir -p $(dir $(SBOM))
	@$(AUDIT_VENV)/bin/python -W ignore -m cyclonedx_py requirements --output-reproducible --pyproject pyproject.toml \
		--output-file $(SBOM) requirements/runtime.txt
	@$(AUDIT_VENV)/bin/python -m supply_chain.sbom $(SBOM) requirements/runtime.txt

# The list of what is in them is of all their packages; what the base image has, that image's own list says.
.PHONY: image
image: sbom ## Build the images with version, labels and, in build/, the list of what they contain
	@for target in control agent kit; do \
		docker build --quiet --target $$target $(if $(BASE_IMAGE),--build-arg BASE_IMAGE=$(BASE_IMAGE)) \
			--label org.opencontainers.image.title=parallelrun-$$target \
			--label org.opencontainers.image.version=$(VERSION) \
			--label org.opencontainers.image.revision=$$(git rev-parse HEAD) \
			--label org.opencontainers.image.licenses=Apache-2.0 \
			--tag parallelrun-$$target:$(VERSION) . >/dev/null || exit 1; \
		echo "parallelrun-$$target:$(VERSION)"; \
	done
	@cp $(SBOM) build/parallelrun-$(VERSION).cdx.json

$(AUDIT_VENV)/ready: requirements/audit.txt
	@echo "Setting up $(AUDIT_VENV)"
	@rm -f $@
	@mkdir -p $(AUDIT_VENV)
	@{ $(PYTHON) -m venv $(AUDIT_VENV) && \
		$(AUDIT_VENV)/bin/python -m pip install --disable-pip-version-check --require-hashes -r requirements/audit.txt ; \
	} >$(AUDIT_VENV)/setup.log 2>&1 || \
		{ tail -n 30 $(AUDIT_VENV)/setup.log; echo "make: failed; the whole log is in $(AUDIT_VENV)/setup.log"; exit 1; } >&2
	@touch $@

.PHONY: chaos
chaos: setup $(if $(STORE),$(OBJECT_SERVERS)/ready) ## Kill, pause and disconnect processes at random (SEEDS=30, STORE=1: data in a store, AUTO=1: chosen sizes, PIPELINES=1)
	@$(BIN)/python -m tests.chaos --seeds $(SEEDS) $(if $(STORE),--store) $(if $(AUTO),--auto) $(if $(PIPELINES),--pipelines)

.PHONY: attack
attack: setup ## Play every attack against each kind of cluster that can be had here
	@$(BIN)/python -m tests.security

.PHONY: damage
damage: setup ## Damage each kind of file of a job, with and without its leader (KINDS=part,decisions)
	@$(BIN)/python -m tests.damage --kinds "$(KINDS)"

.PHONY: azure-client
azure-client: setup ## Let Azure ML's own Python client, in several releases, drive a cluster (CONTAINERS=1: ours of compose, too)
	@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j 3) $(AZURE_READY)
	@$(BIN)/python -m tests.azure_client --environments $(AZURE_VENVS) $(if $(CONTAINERS),--containers) $(AZURE_CLIENTS)

$(AZURE_VENVS)/%/ready: requirements/azure-client-%.txt
	@echo "Setting up $(@D) (about half a minute the first time)"
	@rm -f $@
	@mkdir -p $(@D)
	@{ $(PYTHON) -m venv $(@D) && \
		$(@D)/bin/python -m pip install --disable-pip-version-check --no-compile --require-hashes -r requirements/azure-client-$*.txt && \
		{ $(@D)/bin/python -m compileall -q -x '/tests?/' $(@D)/lib || true; } ; \
	} >$(@D)/setup.log 2>&1 || { tail -n 30 $(@D)/setup.log; echo "make: failed; the whole log is in $(@D)/setup.log"; exit 1; } >&2
	@touch $@

.PHONY: engine-test
engine-test: setup $(if $(filter kubernetes,$(E)),$(CHART_VENV)/ready) ## Run jobs on nodes that an engine provides, and kill those nodes (E=docker; CHAOS_S=60 seconds of that)
	@$(BIN)/python -m tests.engines $(E) $(if $(CHAOS_S),--seconds $(CHAOS_S))

.PHONY: engine-scaling
engine-scaling: setup $(if $(filter kubernetes,$(E)),$(CHART_VENV)/ready) ## Run three jobs, each on ten nodes of an engine that come for it and go, and measure how long they idle (E=slurm; JOB_S=90)
	@$(BIN)/python -m tests.engines.scaling $(E) $(if $(JOB_S),--seconds $(JOB_S))

.PHONY: up
up: ## Start the services in containers, and wait until they are ready (AGENTS=2 nodes)
	@docker compose up -d --wait --build --scale agent=$(AGENTS)

.PHONY: down
down: ## Stop the containers; the data stays
	@docker compose down

.PHONY: chart
chart: $(CHART_VENV)/ready ## Check the Helm chart, and pack it into dist/
	@$(CHART_VENV)/bin/python -m supply_chain.chart deploy/helm/parallelrun dist

$(CHART_VENV)/ready: requirements/chart.txt
	@echo "Setting up $(CHART_VENV)"
	@rm -f $@
	@mkdir -p $(CHART_VENV)
	@{ $(PYTHON) -m venv $(CHART_VENV) && \
		$(CHART_VENV)/bin/python -m pip install --disable-pip-version-check --require-hashes -r requirements/chart.txt ; \
	} >$(CHART_VENV)/setup.log 2>&1 || \
		{ tail -n 30 $(CHART_VENV)/setup.log; echo "make: failed; the whole log is in $(CHART_VENV)/setup.log"; exit 1; } >&2
	@touch $@

# Built twice, to see that the same comes of it; then a job is run with nothing but what pip has made of it.
.PHONY: wheel
wheel: setup ## Build the wheel into dist/, and run a job with it in an empty environment
	@rm -rf build/wheel && mkdir -p build/wheel/once build/wheel/twice build/wheel/job/src build/wheel/job/data dist
	@for build in once twice; do \
		$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
			--wheel-dir build/wheel/$$build . || exit 1; \
	done
	@$(BIN)/python -m supply_chain.wheel build/wheel/once/*.whl build/wheel/twice/*.whl
	@$(PYTHON) -m venv build/wheel/venv
	@build/wheel/venv/bin/python -m pip install --quiet --disable-pip-version-check build/wheel/once/*.whl
	@printf 'def run(mini_batch):\n    return [len(mini_batch)]\n' >build/wheel/job/src/count.py
	@printf 'code: src\nentry_script: count.py\ninputs: data\n' >build/wheel/job/job.yml
	@touch build/wheel/job/data/a
	@cd build/wheel/job && ../venv/bin/parallelrun run job.yml --output out && grep -qx 1 out/parallel_run_step.txt
	@cp build/wheel/once/*.whl dist/ && ls dist/*.whl

.PHONY: lock
lock: ## Lock the newest versions that fit together, in requirements/
	@$(PYTHON) -m venv $(LOCK_VENV)
	@$(LOCK_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade uv
	@mkdir -p requirements
	@# The largest set is solved first, and the others take their versions from it.
	@$(UV_COMPILE) --upgrade --extra dev --extra docker --extra examples --extra gpu --extra otel --extra tables --extra stores pyproject.toml requirements/build.in --output-file requirements/dev.txt >/dev/null
	@$(UV_COMPILE) --constraint requirements/dev.txt --extra docker --extra gpu --extra otel --extra tables --extra stores pyproject.toml --output-file requirements/runtime.txt >/dev/null
	@$(UV_COMPILE) --constraint requirements/dev.txt --extra examples pyproject.toml --output-file requirements/examples.txt >/dev/null
	@$(UV_COMPILE) --constraint requirements/dev.txt requirements/build.in --output-file requirements/build.txt >/dev/null
	@for release in $(AZURE_CLIENTS); do \
		$(UV_COMPILE) requirements/azure-client-$$release.in --output-file requirements/azure-client-$$release.txt >/dev/null || exit 1; \
	done
	@$(UV_COMPILE) --constraint requirements/dev.txt requirements/audit.in --output-file requirements/audit.txt >/dev/null
	@$(UV_COMPILE) --constraint requirements/dev.txt requirements/chart.in --output-file requirements/chart.txt >/dev/null
	@$(UV_COMPILE) --upgrade requirements/object-servers.in --output-file requirements/object-servers.txt >/dev/null
	@$(UV_COMPILE) --upgrade requirements/browser.in --output-file requirements/browser.txt >/dev/null
	@cd $(STUDIO) && npm update --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved --silent
	@cd requirements/azurite && npm update --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved --silent
	@$(UV_COMPILE) --upgrade benchmarks/rivals/requirements.in --output-file benchmarks/rivals/requirements.txt >/dev/null

.PHONY: lock-images
lock-images: ## Pin the images that others have made to their present digests (needs docker and a registry)
	@$(PYTHON) -m supply_chain.images --lock

.PHONY: clean
clean: ## Remove the environment, caches and build products
	@rm -rf $(VENV) $(LOCK_VENV) $(AUDIT_VENV) $(CHART_VENV) $(RIVALS_VENV) $(OBJECT_SERVERS) $(BROWSER) \
		$(STUDIO)/node_modules build dist htmlcov .coverage .coverage.* \
		.hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Every target calls its tools directly, so the same commands serve people, hooks and CI.

PYTHON ?= python3
AGENTS ?= 2
SEEDS ?= 30
SEED ?= 1
TIMES ?= 1
KINDS ?=
B ?=
T ?=
PART ?= all

VENV := .venv
BIN := $(VENV)/bin
# What a user needs: ParallelRun, all its extras, and the packages of the examples.
READY := $(VENV)/ready
# What a contributor needs, too: linters, type checkers, pytest.
TOOLS_READY := $(VENV)/tools-ready
INSTALL = PYTHON="$(PYTHON)" requirements/install.sh
# Once on all cores, and not in each of the processes that start at once. Left out are tests of packages, and packages that
# few jobs import; some packages have files that are for another Python.
SELDOM := pip|pygments|botocore|docker|google|cryptography|hatchling|duckdb
COMPILE = $(BIN)/python -m compileall -q -j 0 -x '/tests?/|site-packages/($(SELDOM))/' client services shared $(VENV)/lib >/dev/null || true

# An environment contains absolute paths: in a moved or copied checkout it would silently run the old one's code.
ifneq ($(shell cat $(READY) 2>/dev/null),$(CURDIR))
.PHONY: $(READY)
endif

# All others are here, one for each file in requirements/ that is no part of .venv, and of the same name:
#   audit           looks for known vulnerabilities in our dependencies
#   azure-client-*  Azure ML's own client, in releases of several years
#   browser         drives a browser in the tests of the web page
#   chart           Helm, and the schemas of Kubernetes
#   conda-names     the names that packages of conda have on PyPI: a table, and nothing that runs
#   docs            builds the site of the documentation
#   fuzz            looks for inputs that parsers can't take; empty where there is no Atheris for the machine
#   mlflow          MLflow's own client, with which a test's job logs
#   object-servers  object stores that tests start: their libraries are older ones of some that we use
#   rivals          other systems, with which the benchmarks compare ours
ENVIRONMENTS := .environments
AUDIT := $(ENVIRONMENTS)/audit
BROWSER := $(ENVIRONMENTS)/browser
CHART := $(ENVIRONMENTS)/chart
CONDA_NAMES := $(ENVIRONMENTS)/conda-names
DOCS := $(ENVIRONMENTS)/docs
FUZZ := $(ENVIRONMENTS)/fuzz
MLFLOW := $(ENVIRONMENTS)/mlflow
OBJECT_SERVERS := $(ENVIRONMENTS)/object-servers
AZURITE := $(ENVIRONMENTS)/azurite
RIVALS := $(ENVIRONMENTS)/rivals
AZURE_CLIENTS := 1.35.2 1.23.1 1.12.1
AZURE_READY := $(AZURE_CLIENTS:%=$(ENVIRONMENTS)/azure-client-%/ready)

COVERAGE := build/coverage
SBOM := build/parallelrun.cdx.json
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)

# The web page. Where npm is missing, it is neither checked nor tested, but in CI that is a failure.
NPM := $(if $(CI),npm,$(shell command -v npm))
STUDIO := studio
STATIC := services/api/parallelrun_api/studio/static

# What `make test` needs beside .venv, and what all tests need.
TESTS_READY := $(STUDIO)/node_modules/ready $(BROWSER)/ready chromium
ALL_TESTS_READY := $(TESTS_READY) $(MLFLOW)/ready $(OBJECT_SERVERS)/ready $(AZURITE)/ready

UV_COMPILE = UV_SYSTEM_CERTS=1 $(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
	--fork-strategy fewest --generate-hashes --no-annotate --no-header --no-config

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: setup
setup: $(TOOLS_READY) ## Create the environment in .venv (PYTHON=python3.12 to choose the interpreter)
	@:

$(READY): requirements/runtime.txt requirements/examples.txt requirements/build.txt pyproject.toml
	@command -v $(PYTHON) >/dev/null || \
		{ echo "make setup: '$(PYTHON)' not found; name a Python 3.11 or newer, as in: make setup PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "make setup: ParallelRun needs Python 3.11 or newer, '$(PYTHON)' is $$($(PYTHON) --version 2>&1); name another, as in: make setup PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "make setup: '$(PYTHON)' lacks the venv module; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo "Setting up $(VENV) (some seconds the first time)"
	@rm -f $(READY)
	@$(INSTALL) $(VENV) --require-hashes -r requirements/runtime.txt -r requirements/examples.txt -r requirements/build.txt
	@$(INSTALL) $(VENV) --no-deps --no-build-isolation --editable .
	@$(COMPILE)
	@echo "$(CURDIR)" >$(READY)

$(TOOLS_READY): requirements/dev.txt | $(READY)
	@echo "Adding to $(VENV) what contributors need"
	@$(INSTALL) $(VENV) --require-hashes -r requirements/dev.txt
	@$(COMPILE)
	@touch $@

$(ENVIRONMENTS)/%/ready: requirements/%.txt | $(READY)
	@echo "Setting up $(@D) (some seconds the first time)"
	@rm -f $@
	@$(INSTALL) $(@D) $(ONLY) --require-hashes -r $<
	@touch $@

# Of this one only a file with data is read.
$(CONDA_NAMES)/ready: ONLY := --no-deps

# Each of them takes one core, or waits for the network: as many at once as `-j` says.
.PHONY: environments
environments: setup $(AUDIT)/ready $(FUZZ)/ready $(AZURE_READY) $(ALL_TESTS_READY) ## Create whatever other targets would when they need it (-j 3)
	@:

.PHONY: run
run: $(READY) ## Run the main example job: classify handwritten digits
	@$(BIN)/python examples/digits/main.py

.PHONY: test
test: setup $(if $(T),$(ALL_TESTS_READY),$(TESTS_READY)) ## Run the tests that prove the product, in some minutes (T=tests/unit: all tests there)
	@$(BIN)/python -m tests $(or $(T),test)

.PHONY: test-all
test-all: setup $(ALL_TESTS_READY) ## Run all tests that `make test` leaves out (PART=1 to 6: a sixth of them)
	@$(BIN)/python -m tests $(PART)

.PHONY: pictures
pictures: setup $(TESTS_READY) ## Take the pictures of docs/web-page.md anew, from the tour
	@PARALLELRUN_PICTURES=docs/pictures $(BIN)/python -m pytest -q tests/studio/test_views.py

.PHONY: tour
tour: setup $(TESTS_READY) ## Look at every view of the web page in a browser; pictures are in build/studio-screenshots
	@$(BIN)/python -m pytest -q tests/studio

.PHONY: coverage
coverage: setup $(ALL_TESTS_READY) ## Run `make test` and all other unit tests, those of queue and API, and measure which lines they run in all processes
	@rm -rf $(COVERAGE) && mkdir -p $(COVERAGE)
	@COVERAGE_FILE=$(CURDIR)/$(COVERAGE)/data $(BIN)/coverage run -m tests $(or $(T),test tests/unit tests/integration/queue tests/integration/api)
	@cd $(COVERAGE) && COVERAGE_FILE=data $(CURDIR)/$(BIN)/coverage combine --rcfile=$(CURDIR)/pyproject.toml --quiet
	@COVERAGE_FILE=$(COVERAGE)/data $(BIN)/coverage html --quiet --directory $(COVERAGE)/html
	@COVERAGE_FILE=$(COVERAGE)/data $(BIN)/coverage report --skip-covered --sort=cover >$(COVERAGE)/report.txt; code=$$?; \
		tail -n 2 $(COVERAGE)/report.txt; exit $$code

.PHONY: quick
quick: setup ## Run the tests of what has changed since main, in some seconds
	@$(BIN)/python -m tests.quick

$(AZURITE)/ready: requirements/azurite/package-lock.json
	@if [ -n "$(NPM)" ]; then \
		echo "Setting up Azure's object store in $(@D) (some seconds the first time)" && \
		rm -f $@ && mkdir -p $(@D) && cp requirements/azurite/package*.json $(@D) && \
		{ (cd $(@D) && npm ci --ignore-scripts --no-bin-links --no-audit --no-fund) >$(@D)/setup.log 2>&1 || \
			{ tail -n 30 $(@D)/setup.log; echo "make: failed; the whole log is in $(@D)/setup.log"; exit 1; } >&2; } && \
		touch $@; \
	fi

.PHONY: studio
studio: $(STUDIO)/node_modules/ready ## Build the web page (needs npm); what is built is committed
	@cd $(STUDIO) && npm run --silent generate && npm run --silent types && node build.mjs ../$(STATIC)

$(STUDIO)/node_modules/ready: $(STUDIO)/package-lock.json
	@if [ -n "$(NPM)" ]; then \
		echo "Setting up $(@D) (some seconds the first time)" && \
		mkdir -p build && { (cd $(STUDIO) && npm ci --ignore-scripts --no-audit --no-fund) >build/studio-setup.log 2>&1 || \
			{ tail -n 30 build/studio-setup.log; echo "make: failed; the whole log is in build/studio-setup.log"; exit 1; } >&2; } && \
		touch $@; \
	fi

# Where there is no Chromium, the tests of the web page are skipped, but not in CI.
.PHONY: chromium
chromium:
	@if [ -n "$$CI" ] && ! command -v chromium >/dev/null && [ "$$(id -u)" = 0 ]; then \
		echo "Installing Chromium" && mkdir -p build && \
		{ { apt-get update && apt-get install --yes --no-install-recommends chromium; } >build/chromium.log 2>&1 || \
			{ tail -n 30 build/chromium.log; echo "make: failed; the whole log is in build/chromium.log"; exit 1; } >&2; }; \
	fi

.PHONY: check
check: setup ## Lint, types, contracts, and the tests of what has changed
	@for phase in lint types contracts quick; do \
		start=$$(date +%s); \
		$(MAKE) --no-print-directory $$phase || exit 1; \
		echo "check: $$phase passed in $$(( $$(date +%s) - start )) s"; \
	done

.PHONY: lint
lint: setup $(STUDIO)/node_modules/ready ## Check style and layout of the code, and of the web page where there is npm
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(if $(NPM),cd $(STUDIO) && npm run --silent check)

.PHONY: fmt
fmt: setup $(STUDIO)/node_modules/ready ## Format the code and fix what can be fixed safely
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .
	@$(if $(NPM),cd $(STUDIO) && npm run --silent fix)

.PHONY: types
types: setup $(STUDIO)/node_modules/ready ## Check types
	@$(BIN)/mypy
	@$(if $(NPM),cd $(STUDIO) && npm run --silent types)

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
bench-rivals: setup $(RIVALS)/ready ## Compare with Ray, Dask, Celery and joblib, at full size
	@$(BIN)/python -m benchmarks --full $(or $(B),noop hashing)

.PHONY: audit
audit: $(AUDIT)/ready ## Look for known vulnerabilities in what is installed
	@$(AUDIT)/bin/python -m supply_chain.audit requirements/dev.txt requirements/audit.txt

.PHONY: sbom
sbom: $(AUDIT)/ready ## List what the images contain, as CycloneDX in build/
	@mkdir -p $(dir $(SBOM))
	@$(AUDIT)/bin/python -W ignore -m cyclonedx_py requirements --output-reproducible --pyproject pyproject.toml \
		--output-file $(SBOM) requirements/runtime.txt
	@$(AUDIT)/bin/python -m supply_chain.sbom $(SBOM) requirements/runtime.txt

# The list of what is in them is of all their packages; what the base image has, that image's own list says.
.PHONY: image
image: setup sbom ## Build the images with version, labels and, in build/, what they contain and are made of
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
	@$(BIN)/python -m supply_chain.provenance build/parallelrun-$(VERSION).intoto.json \
		$(foreach target,control agent kit,parallelrun-$(target):$(VERSION))

.PHONY: chaos
chaos: setup $(if $(STORE),$(OBJECT_SERVERS)/ready) ## Kill, pause and disconnect processes at random (SEEDS=30 from SEED=1, STORE=1: data in a store, AUTO=1: chosen sizes, PIPELINES=1, WAITING=1)
	@$(BIN)/python -m tests.chaos --first $(SEED) --seeds $(SEEDS) $(if $(STORE),--store) $(if $(AUTO),--auto) $(if $(PIPELINES),--pipelines) $(if $(WAITING),--waiting)

.PHONY: attack
attack: setup ## Play every attack against each kind of cluster that can be had here
	@$(BIN)/python -m tests.security

.PHONY: fuzz
fuzz: setup $(FUZZ)/ready ## Look for inputs that our parsers neither read nor refuse (P=url: one of them, S=600: seconds for each)
	@$(BIN)/python -m tests.fuzz $(P) --seconds $(or $(S),60)

.PHONY: odd-files
odd-files: setup ## Read files as the world writes them, made from SEED, and compare each value with what was written
	@$(BIN)/python -m tests.odd_files.verdicts $(SEED) $(TIMES)

.PHONY: damage
damage: setup ## Damage each kind of file of a job, with and without its leader (KINDS=part,decisions)
	@$(BIN)/python -m tests.damage --kinds "$(KINDS)"

.PHONY: azure-client
azure-client: setup ## Let Azure ML's own Python client, in several releases, drive a cluster (CONTAINERS=1: ours of compose, too; ON=containers: only those)
	@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j 3) $(AZURE_READY)
	@$(BIN)/python -m tests.azure_client --environments $(ENVIRONMENTS) $(if $(or $(ON),$(CONTAINERS)),--on $(or $(ON),processes provisioner containers documents) --) $(AZURE_CLIENTS)

.PHONY: engine-test
engine-test: setup $(if $(filter kubernetes,$(E)),$(CHART)/ready) ## Run jobs on nodes that an engine provides, and kill those nodes (E=docker; CHAOS_S=60 seconds of that)
	@$(BIN)/python -m tests.engines $(E) $(if $(CHAOS_S),--seconds $(CHAOS_S))

.PHONY: engine-scaling
engine-scaling: setup $(if $(filter kubernetes,$(E)),$(CHART)/ready) ## Run three jobs, each on ten nodes of an engine that come for it and go, and measure how long they idle (E=slurm; JOB_S=90)
	@$(BIN)/python -m tests.engines.scaling $(E) $(if $(JOB_S),--seconds $(JOB_S))

.PHONY: up
up: ## Start the services in containers, and wait until they are ready (AGENTS=2 nodes)
	@docker compose up -d --wait --build --remove-orphans --scale agents=$(AGENTS)

.PHONY: down
down: ## Stop the containers; the data stays
	@docker compose down

.PHONY: docs
docs: $(DOCS)/ready ## Build the site of the documentation into build/site; a link that leads nowhere is a failure
	@$(BIN)/python -m supply_chain.reference build/reference
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict 2>build/site.log || { grep -v "^INFO" build/site.log >&2; exit 1; }

.PHONY: chart
chart: $(CHART)/ready ## Check the Helm chart, and pack it into dist/
	@$(CHART)/bin/python -m supply_chain.chart deploy/helm/parallelrun dist

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
	@mkdir build/wheel/begun && cd build/wheel/begun && ../venv/bin/parallelrun init first \
		&& ../venv/bin/parallelrun run first/job.yml --output out && test -s out/results.txt
	@cp build/wheel/once/*.whl dist/ && ls dist/*.whl

.PHONY: lock
lock: $(READY) ## Lock the newest versions that fit together, in requirements/
	@# The largest set is solved first, and the others take their versions from it.
	@$(UV_COMPILE) --upgrade --extra dev --extra docker --extra examples --extra gpu --extra oidc --extra otel --extra tables --extra stores pyproject.toml requirements/build.in --output-file requirements/dev.txt >/dev/null
	@$(UV_COMPILE) --constraint requirements/dev.txt --extra docker --extra gpu --extra oidc --extra otel --extra tables --extra stores pyproject.toml --output-file requirements/runtime.txt >/dev/null
	@$(UV_COMPILE) --constraint requirements/dev.txt --extra examples pyproject.toml --output-file requirements/examples.txt >/dev/null
	@$(UV_COMPILE) --constraint requirements/dev.txt requirements/build.in --output-file requirements/build.txt >/dev/null
	@for release in $(AZURE_CLIENTS); do \
		$(UV_COMPILE) requirements/azure-client-$$release.in --output-file requirements/azure-client-$$release.txt >/dev/null || exit 1; \
	done
	@$(UV_COMPILE) --constraint requirements/dev.txt requirements/audit.in --output-file requirements/audit.txt >/dev/null
	@$(UV_COMPILE) --constraint requirements/dev.txt requirements/chart.in --output-file requirements/chart.txt >/dev/null
	@$(UV_COMPILE) --upgrade --no-deps requirements/conda-names.in --output-file requirements/conda-names.txt >/dev/null
	@$(MAKE) --no-print-directory conda-names
	@$(UV_COMPILE) --constraint requirements/dev.txt --constraint requirements/audit.txt requirements/docs.in --output-file requirements/docs.txt >/dev/null
	@$(UV_COMPILE) --upgrade requirements/fuzz.in --output-file requirements/fuzz.txt >/dev/null
	@$(UV_COMPILE) --constraint requirements/dev.txt requirements/mlflow.in --output-file requirements/mlflow.txt >/dev/null
	@$(UV_COMPILE) --upgrade requirements/object-servers.in --output-file requirements/object-servers.txt >/dev/null
	@$(UV_COMPILE) --upgrade requirements/browser.in --output-file requirements/browser.txt >/dev/null
	@cd $(STUDIO) && npm update --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved --silent
	@cd requirements/azurite && npm update --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved --silent
	@$(UV_COMPILE) --upgrade requirements/rivals.in --output-file requirements/rivals.txt >/dev/null

.PHONY: conda-names
conda-names: $(CONDA_NAMES)/ready ## Write the names that packages of conda have on PyPI, from the locked conda-pypi
	@$(CONDA_NAMES)/bin/python -m supply_chain.conda_names shared/parallelrun_core/spec

.PHONY: lock-images
lock-images: ## Pin the images that others have made to their present digests (needs docker and a registry)
	@$(PYTHON) -m supply_chain.images --lock

.PHONY: clean
clean: ## Remove the environments, caches and build products
	@rm -rf $(VENV) $(ENVIRONMENTS) \
		$(STUDIO)/node_modules build dist htmlcov .coverage .coverage.* \
		.hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Each target sets up its own .venv (the peers of each comparison live in a .venv-<comparison>, what builds a release in .venv-dist,
# the oldest versions in .venv-oldest); nothing else on the machine is touched, but for Chromium, which `make test` installs where it
# is missing and root allows it (scripts/browser.sh).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DIST := .venv-dist
OLDEST := .venv-oldest
COMPARISONS := $(patsubst benchmarks/%-requirements.txt,%,$(wildcard benchmarks/*-requirements.txt))
PEERS := $(COMPARISONS:%=.venv-%/peers.stamp)

SECONDS ?= 60
TESTS ?= tests

.PHONY: demo browser test test-all check lint style types suite suite-all mutations fuzz tree docs pictures screenshots bench \
	bench-quick bench-stale bench-confirm bench-gpu test-gpu peers sketching dist schemas test-wheel test-oldest surface clean

$(VENV)/dev.stamp: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@

$(VENV)/demo.stamp: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[demo]"
	touch $@

$(VENV)/docs.stamp: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[docs]"
	touch $@

$(VENV)/gpu.stamp: $(VENV)/dev.stamp
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[gpu]"
	touch $@

$(VENV)/bench.stamp: $(VENV)/dev.stamp
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[bench]"
	touch $@

# torch first and alone, where it is needed, so that no other build of it is pulled by what needs it
.venv-%/peers.stamp: benchmarks/%-requirements.txt
	$(PYTHON) -m venv .venv-$*
	grep '^torch==' $< | xargs -r .venv-$*/bin/pip install --quiet --disable-pip-version-check
	.venv-$*/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

$(DIST)/dist.stamp: scripts/dist-requirements.txt
	$(PYTHON) -m venv $(DIST)
	$(DIST)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

# the oldest versions that pyproject.toml allows, and the newest of everything else that goes with these
$(OLDEST)/oldest.stamp: pyproject.toml scripts/requirements.py
	$(PYTHON) -m venv --clear $(OLDEST)
	$(PYTHON) scripts/requirements.py > $(OLDEST)/oldest.txt
	$(OLDEST)/bin/pip install --quiet --disable-pip-version-check --constraint $(OLDEST)/oldest.txt --editable ".[test]"
	touch $@

demo: $(VENV)/demo.stamp
	$(BIN)/reduset demo --folder out

browser:
	scripts/browser.sh

# the types are checked while the two processes of the tests wait for each other's compiled code
test: style
	$(MAKE) --no-print-directory --jobs=2 types suite

test-all: style browser
	$(MAKE) --no-print-directory --jobs=2 types suite-all

# lint, types, and the tests of the packages that changed since main
check: style types
	$(BIN)/python scripts/check.py

lint: style types

style: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/dev.stamp
	$(BIN)/mypy

# a thread for each process, since there are two; bytecode is kept, since many tests start a process of their own
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 REDUSET_NUM_THREADS=1 \
	$(BIN)/python -m pytest -n 2 --dist worksteal

suite: $(VENV)/dev.stamp
	$(PYTEST) -m "not slow and not gpu"

suite-all: $(VENV)/dev.stamp
	$(PYTEST) -m "not gpu" --timings

# 40 planted faults: which of them do the tests find? An hour or more
mutations: $(VENV)/dev.stamp
	$(BIN)/python scripts/mutations.py --slow

# on a machine with a CUDA device: every law of the engine there against the processor's result
test-gpu: $(VENV)/gpu.stamp
	$(BIN)/python -m pytest tests/gpu

# files of every kind, made wrong at random, for so many SECONDS; what failed is kept in build/fuzz
fuzz: $(VENV)/dev.stamp
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 REDUSET_NUM_THREADS=1 $(BIN)/python tests/support/fuzz.py --seconds $(SECONDS)

tree:
	$(PYTHON) scripts/tree.py

docs: $(VENV)/docs.stamp
	$(BIN)/sphinx-build -W --keep-going -q -b html -c docs -d build/doctrees . build/site
	@echo "The site is in build/site: open build/site/index.html"

pictures: $(VENV)/docs.stamp
	$(BIN)/python docs/_ext/site_pictures.py

screenshots: $(VENV)/dev.stamp browser
	$(BIN)/python scripts/report_pictures.py

bench: $(VENV)/bench.stamp $(PEERS)
	$(BIN)/python benchmarks/run.py

# a small version of every benchmark, so that none stops working; nothing is recorded
bench-quick: $(VENV)/bench.stamp
	$(BIN)/python benchmarks/run.py --quick

# results that are older than the code they measure
bench-stale: $(VENV)/bench.stamp
	$(BIN)/python benchmarks/run.py --stale

# keep stale results that the code of today returns as well; times have to be measured again
bench-confirm: $(VENV)/bench.stamp
	$(BIN)/python benchmarks/run.py --confirm

bench-gpu: $(VENV)/gpu.stamp
	$(BIN)/python benchmarks/run.py gpu

peers: $(VENV)/bench.stamp .venv-peers/peers.stamp
	$(BIN)/python -m benchmarks.peers.peers
	$(BIN)/python benchmarks/run.py peers/peers

sketching: $(VENV)/bench.stamp .venv-sketch/peers.stamp
	$(BIN)/python -m benchmarks.peers.sketching --measure
	$(BIN)/python benchmarks/run.py peers/sketching

# the source archive and the wheel, and what a package index would say of them
dist: $(DIST)/dist.stamp schemas
	rm -rf dist
	$(DIST)/bin/python -m build --outdir dist .
	$(DIST)/bin/twine check --strict dist/*
	$(DIST)/bin/check-wheel-contents dist/*.whl
	$(PYTHON) scripts/wheel.py --contents dist/*.whl

# the files that other services read, against their schemas, which come with the checker
schemas: $(DIST)/dist.stamp
	$(DIST)/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(DIST)/bin/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/wish.yml
	$(DIST)/bin/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(DIST)/bin/check-jsonschema --builtin-schema vendor.readthedocs .readthedocs.yaml
	$(DIST)/bin/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

# the wheel in empty environments: the core, each extra alone, and all
test-wheel: dist
	$(PYTHON) scripts/wheel.py dist/*.whl

# old libraries are used in ways that newer ones deprecate, so these warnings are none of ours; without SCIPY_ARRAY_API the checks of
# estimators in scikit-learn 1.6 cannot be imported beside array-api-compat, which anndata brings
test-oldest: $(OLDEST)/oldest.stamp
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 REDUSET_NUM_THREADS=1 SCIPY_ARRAY_API=1 \
	$(OLDEST)/bin/python -m pytest -n 2 --dist worksteal \
	-W ignore::DeprecationWarning -W ignore::PendingDeprecationWarning -W ignore::FutureWarning \
	--ignore tests/project --ignore tests/gpu --ignore tests/cytometry/test_gates.py $(TESTS)

# the public names and their signatures, which a test compares with the source and with the changelog
surface: $(VENV)/dev.stamp
	$(BIN)/python scripts/surface.py

clean:
	rm -rf $(VENV) $(COMPARISONS:%=.venv-%) $(DIST) $(OLDEST) build dist docs/gallery docs/reference .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

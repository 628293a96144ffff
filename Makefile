# Two commands: `make demo` and `make test`. Both set up `.venv` first where that is needed.

PYTHON ?= python3
BIN := .venv/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test kernels lint docs readme moments notebooks bench reproduction studies soak dist wheels harnesses minimum newest clean

demo: .venv/ready
	@$(BIN)/python examples/first_plan.py
	@mkdir -p build
	@$(BIN)/freight score examples/hyp.txt examples/ref.txt \
		-m lazy-emd -m bary-score -m wrd-score -m std -o build/demo.html

test: .venv/ready-dev lint
	@# Two workers with one thread each: more threads than cores would wait for one another.
	@# A file stays with one worker, so that its fixtures are made once; the slow folders are first.
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

kernels: .venv/ready
	@# what is in src/cpp, built again beside the sources
	$(PIP_INSTALL) --no-deps -e .

lint: .venv/ready-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: .venv/ready-dev
	@# a site that fetches nothing: build/site/index.html; a dead link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

readme: .venv/ready-dev
	$(BIN)/python docs/_site/readme.py

moments: .venv/ready-dev
	@# what the default metric standardises with, for the encoders in packages, all installed
	$(BIN)/python release/moments.py

notebooks: .venv/ready-dev
	$(BIN)/python docs/_site/executing.py notebooks/*.ipynb

bench: .venv/ready-dev
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/solvers.py
	$(BIN)/python benchmarks/text.py
	$(BIN)/python benchmarks/words.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/service.py
	$(BIN)/python benchmarks/ray_engine.py

SCORES ?= benchmarks/results/reproduction
reproduction: .venv/ready-dev
	$(BIN)/python benchmarks/reproduction/scores.py -o $(SCORES)
	PYTHONPATH=benchmarks/studies $(BIN)/python benchmarks/reproduction/page.py $(SCORES)
	$(BIN)/python docs/_site/readme.py

studies: .venv/ready-dev
	$(BIN)/python benchmarks/studies/edits.py
	$(BIN)/python benchmarks/studies/penalties.py
	$(BIN)/python benchmarks/studies/figures.py
	$(BIN)/python benchmarks/studies/robustness.py freight-da.embedded

soak: .venv/ready-dev
	FREIGHT_KILLS=100 $(BIN)/python -m pytest -q tests/encoders -k killed
	FREIGHT_KILLS=200 FREIGHT_KILL_LOG=benchmarks/results/kills.jsonl \
		$(BIN)/python -m pytest -q tests/run/test_killed.py
	FREIGHT_BITS=250 $(BIN)/python -m pytest -q tests/core/test_bits.py
	FREIGHT_FUZZ=20000 $(BIN)/python -m pytest -q tests/test_fuzz.py
	FREIGHT_LONG=10000 $(BIN)/python -m pytest -q tests/encoders/test_long_texts.py
	FREIGHT_AGREEMENT=all $(BIN)/python -m pytest -q \
		tests/test_agreement.py tests/judge/test_published.py tests/metrics/test_lexical.py
	FREIGHT_OPTIMISED=1 $(BIN)/python -m pytest -q tests/release/test_building.py
	FREIGHT_PAGES=all $(BIN)/python -m pytest -q \
		tests/docs/test_site.py tests/report/test_judge_page.py tests/serve/test_explorer.py
	FREIGHT_SOAK_SECONDS=600 $(BIN)/python -m pytest -q -s tests/serve/test_soak.py

dist: .venv/ready-dev
	@# compiled by zig, so that it runs on any Linux with the glibc of 2012
	$(PIP_INSTALL) ziglang auditwheel
	$(BIN)/python release/building.py --glibc 2.17 -o dist

wheels: .venv/ready-dev
	$(BIN)/python release/wheels.py

harnesses: .venv/ready-dev
	@# DeepEval, Inspect and promptfoo, which ask for older libraries, beside the environment
	$(PYTHON) -m venv build/harnesses/python
	echo $(CURDIR)/.venv/lib/python*/site-packages > $$(echo build/harnesses/python/lib/python*/site-packages)/beside.pth
	build/harnesses/python/bin/pip install --quiet deepeval inspect-ai
	npm install --silent --no-audit --no-fund --prefix build/harnesses/node promptfoo
	PYTHONPATH=$(CURDIR)/src:$(CURDIR)/tests PROMPTFOO=$(CURDIR)/build/harnesses/node/node_modules/.bin/promptfoo \
		build/harnesses/python/bin/python -m pytest -q -W ignore tests/interop/test_harnesses.py

minimum newest: .venv/ready-dev
	$(BIN)/python release/versions.py $@

clean:
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

.venv/bin/python:
	@$(PYTHON) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer with venv is needed (Debian: apt-get install python3-venv), or say PYTHON=..."; exit 1; }
	$(PYTHON) -m venv .venv

.venv/ready: .venv/bin/python pyproject.toml constraints.txt CMakeLists.txt $(wildcard src/cpp/*)
	$(PIP_INSTALL) -e '.[embedded,report]'
	@touch $@

.venv/ready-dev: .venv/ready
	$(PIP_INSTALL) -e '.[dev]'
	@touch $@

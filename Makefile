# `make` alone prints the menu. Every target does its own set-up: all that has to be there is cargo and Python >= 3.11.

.DEFAULT_GOAL := menu
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The interpreter that pyo3 looks at: one and the same everywhere, so that nothing is rebuilt for another one.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Everything but the fuzz targets, which have flags of their own. As one selection of packages, so that tests, lint and
# the module ask the same features of libraries (tests/test_build.py), and what one has built is there for the others.
ALL := --workspace --exclude airloom-fuzz
# What maturin tells pyo3: told the same, cargo does not build pyo3 again.
AS_MATURIN = PYO3_BUILD_EXTENSION_MODULE=1 PYO3_CONFIG_FILE=$$(ls $(CURDIR)/target/maturin/pyo3-config-*.txt) \
	PYO3_ENVIRONMENT_SIGNATURE=$$($(BIN)/python -c "import sys; print('cpython-%d.%d-64bit' % sys.version_info[:2])")

# Comments name what is private, too, for who reads the sources.
RUSTDOC := RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" cargo doc --no-deps

.PHONY: menu demo build test lint fmt bench nightly docs site replications wheel installed develop module

menu: ## print this menu
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: PROFILE := --profile demo
demo: module ## simulate a page over UMTS, then emulate the same with real curl; one result folder
	@PATH="$(CURDIR)/$(BIN):$$PATH" tools/demo

build: develop ## everything, as the tests use it: Rust and the Python module (debug profile)
	$(AS_MATURIN) cargo test $(ALL) --no-run

test: develop ## run every test, Rust and Python; prints the number skipped last
	@$(BIN)/python tools/run_tests.py

lint: develop ## formatting, clippy, ruff, mypy
	cargo fmt --all --check
	$(AS_MATURIN) cargo clippy --quiet $(ALL) --all-targets -- -D warnings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

fmt: $(VENV)/stamp-tests ## format Rust and Python
	cargo fmt --all
	$(BIN)/ruff check --quiet --fix-only
	$(BIN)/ruff format

bench: $(VENV)/stamp-tests ## measure (release): criterion, instruction counts, whole processes; writes bench.json
	cargo bench --quiet -p airloom-drive --bench worlds
	cargo bench --quiet -p airloom-wap --bench wsp_headers
	cargo bench --quiet -p airloom-content --bench wml
	@$(BIN)/maturin develop --quiet --release
	@PYTHON=$(BIN)/python tools/bench/run

# Studies that measure real programs, too (tools/nightly.py).
REAL := umts-proxies phs-multilink wap-vs-http-wcdma wave-and-wait
SIMULATED := $(patsubst python/airloom/studies/%/claims.toml,nightly-study-%,$(wildcard python/airloom/studies/*/claims.toml))
MEASURED := $(REAL:%=nightly-real-%)
NIGHTLY := nightly-clocks nightly-python nightly-peers $(MEASURED) nightly-wheel $(SIMULATED) nightly-rust nightly-package nightly-fuzz
# Under `make nightly` everything is there already, and nothing may be installed anew below running tests.
READY := develop
# Seconds of fuzzing, for all targets together.
FUZZ := 10800
STUDIES := target/nightly/studies
CLOCKS := target/nightly/clocks
INSTALLED := target/wheel
# Test programs that draw random cases, beside those in the libraries (tests/test_nightly.py).
RANDOM_TESTS := bodies html_pages tcp_episodes tcp_garbage tcp_linux tcp_properties wbxml_properties wsp_headers
.PHONY: $(NIGHTLY)

nightly: build ## the long tests, some two hours; each part is a target of its own: nightly-rust, -python, -clocks, ...
	-@tools/peers test http3 runners
	-@$(MAKE) --no-print-directory --keep-going $(VENV)/stamp-peers $(VENV)/stamp-docs
	@$(BIN)/python -m tools.nightly

# Each part does all that it has to do, whatever of it fails.
# Short transfers over many seeds: where a radio loses, their times fall into groups, and a median of ten moves by 2 %.
nightly-clocks: $(READY) # virtual time against real time
	@rm -rf $(CLOCKS)
	set -f; code=0; n=0; for what in "both-clocks --only */1MB" "both-clocks --only */200kB --seeds 40" \
		"wap-both-clocks --jobs 2" "h3-both-clocks --jobs 2" "linux-lab tests/data/linux_tcp"; do \
		$(BIN)/airloom validate $$what --out $(CLOCKS)/$$((n += 1)) || code=1; done; exit $$code

# A hundred kills of each kind would take an hour. The two files are on a worker each, beside one another.
nightly-python: $(READY) # the slow ones, and more kills
	-@tools/peers runners
	code=0; AIRLOOM_KILLS=25 $(BIN)/pytest -n auto -m "slow or not slow" tests/emulate/test_kills.py \
		tests/emulate/test_kills_of_tests.py || code=1; \
	$(BIN)/pytest -n auto -m slow --ignore tests/emulate/test_kills_of_tests.py || code=1; exit $$code

# Clients of others have three tries: where a third is lost, aioquic has waited 60 s for its own server, and quic-go gives a
# handshake ten seconds, in which the library's probes are few.
nightly-peers: $(READY) $(VENV)/stamp-peers # other people's programs
	-@tools/peers http3
	@rm -rf target/interop; mkdir -p target/interop
	code=0; $(BIN)/python conformance/http3 || code=1; \
	$(BIN)/airloom interop run -c airloom -s airloom,quic-go,aioquic --out target/interop/client || code=1; \
	$(BIN)/airloom interop run -c quic-go,aioquic -s airloom --tries 3 --out target/interop/server || code=1; \
	$(BIN)/airloom interop run -c quic-go,aioquic -s quic-go,aioquic --tries 3 --out target/interop/others || code=1; \
	$(BIN)/python conformance/interop target/interop/client target/interop/server || code=1; exit $$code

# Whole, in virtual time, by what users get: two to three times as quick as a debug build. Of those without programs the
# verdicts are final: none contradicts the run that ships.
$(SIMULATED): nightly-study-%: $(READY:develop=develop installed)
	@rm -rf $(STUDIES)/$*
	code=0; for what in run report; do $(INSTALLED)/bin/airloom study $$what $* --out $(STUDIES)/$* || code=1; done; \
	$(if $(filter $*,$(REAL)),,$(BIN)/python tools/replications.py --same $* $(STUDIES)/$*/full || code=1;) exit $$code

# The same with real programs, after it, and then its verdicts.
$(MEASURED): nightly-real-%: $(READY:develop=nightly-study-%)
	code=0; $(BIN)/airloom study run $* --real --out $(STUDIES)/$* || code=1; \
	$(BIN)/python tools/replications.py --same $* $(STUDIES)/$*/full || code=1; exit $$code

# Not optimised further: overflows and debug assertions are findings, and everything is built.
# Episodes are other ones every day of the year: 200,000 take ten minutes of two processors. What fails is made smaller for a
# minute: without an end to that a case of a second would be for a day.
nightly-rust: $(READY) # many more random cases; QUIC, and networks with it, by its second library
	first=$$(( 10#$$(date +%j) * 200000 )); code=0; $(AS_MATURIN) PROPTEST_CASES=20000 PROPTEST_MAX_SHRINK_TIME=60000 AIRLOOM_FUZZ_CASES=20000 \
		AIRLOOM_EPISODES=$$first..$$(( first + 200000 )) AIRLOOM_TRANSFER=20000000 \
		cargo test $(ALL) --no-fail-fast --lib $(addprefix --test ,$(RANDOM_TESTS)) || code=1; \
	cargo test -p airloom-quic -p airloom-system-tests --features airloom-quic/quinn,airloom-system-tests/quinn --no-fail-fast \
		|| code=1; exit $$code

nightly-package: $(READY) # what users get: a wheel, which the studies wait for, and the site
	@rm -rf $(INSTALLED)
	code=0; for what in installed site; do $(MAKE) --no-print-directory $$what || code=1; done; \
		$(BIN)/python tools/wheel_check.py dist/*.whl || code=1; exit $$code

# Its bar is tens of microseconds: in a debug build the datagrams' own way takes as long.
nightly-wheel: $(READY:develop=installed) # the network of the interop runner, by what users get
	$(INSTALLED)/bin/airloom validate interop-sim

nightly-fuzz: $(READY) # three hours for all targets; an hour or 100 million executions for each: tools/fuzz alone
	@$(BIN)/python tools/fuzz --budget $(FUZZ)

docs: develop ## generate docs/reference, and the Rust reference into target/doc
	cargo run --quiet -p airloom-xtask -- docs
	$(BIN)/python tools/reference.py
	$(RUSTDOC)

site: $(READY) $(VENV)/stamp-docs ## all documents and references as one site that needs no network: target/site/html/index.html
	$(RUSTDOC) --quiet
	@$(BIN)/python -m tools.site.make

replications: develop ## write docs/replications from the full runs of the studies that ship
	$(BIN)/python tools/replications.py

wheel: $(VENV)/stamp ## a wheel into dist/ (release)
	$(BIN)/maturin build --release --out dist

installed: wheel # the same in an environment of its own
	@rm -rf $(INSTALLED); $(PYTHON) -m venv $(INSTALLED)
	@$(INSTALLED)/bin/pip install --quiet $$(ls -t dist/*.whl | head -1)

# The virtual environment depends on pyproject.toml alone; the module is built every time (a second when nothing
# changed), so that an edited .rs never leaves a stale module behind.
develop: $(VENV)/stamp-tests module

module: $(VENV)/stamp
	@tools/patient "building airloom, some minutes on two cores if nothing is there yet" --crates airloom-py \
		-- $(BIN)/maturin develop $(PROFILE)

$(VENV)/stamp: pyproject.toml tools/requirements.py
	@$(PYTHON) tools/requirements.py --check
	@$(PYTHON) -m venv $(VENV)
	@$(PYTHON) tools/requirements.py > $(VENV)/requirements.txt
	@tools/patient "installing what the program needs into $(VENV), about a minute" -- $(BIN)/pip install -r $(VENV)/requirements.txt
	@touch $@

$(VENV)/stamp-tests: $(VENV)/stamp
	@$(PYTHON) tools/requirements.py test lint > $(VENV)/requirements-tests.txt
	@tools/patient "installing what the tests need into $(VENV), about a minute" -- $(BIN)/pip install -r $(VENV)/requirements-tests.txt
	@touch $@

# What one part each takes besides. `make nightly` has it before tests run.
$(VENV)/stamp-peers $(VENV)/stamp-docs: $(VENV)/stamp-%: $(VENV)/stamp-tests
	@$(PYTHON) tools/requirements.py $* > $(VENV)/$*.txt
	@$(BIN)/python -m pip install --quiet -r $(VENV)/$*.txt
	@touch $@

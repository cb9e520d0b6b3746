# The commands of README.md. `make help` lists them.
#
# What is missing on the machine is installed if we are root and have apt;
# otherwise the line to run is printed and make stops.

.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory

CARGO ?= cargo
PYTHON ?= python3
# Tested, and not in default builds: their libraries are many.
FEATURES := alpheus/kafka,alpheus/object-store,alpheus-bench/pairing
# How long `make fuzz` stays with each decoder.
SECONDS_EACH ?= 60
# The cargo-mutants that `make mutants` works with.
MUTANTS := 27.1.0
# How many tests run at once: of whole processes, beside them those that mostly wait for clocks,
# and beside both all others, of three test programs at a time, one of which mostly waits.
TEST_THREADS ?= 4
WAITING_THREADS ?= 4
OTHER_THREADS ?= 1
# What only computes gives way to tests of whole processes, whose clocks do not wait for it.
YIELDING := nice -n 5
# Tests of whole processes that wait for minutes and compute little.
WAITING := stats:: flink:: worker:: otlp:: doctor:: pass:: outages:: examples_of_statistics examples_of_boards
# All tests but those of whole processes, and all that is built and not a test. `cargo xtask tidy` says
# if a test target or a benchmark is missing.
OTHERS := --lib --bin xtask --test all --test plain --test suite --test vectors
BUILT := --bin alpheus --bin alpheus-bench --bin alpheus-model --example native --example known_answers --example alpheus \
  --example alpheus_known --example throughput --bench kernel --bench server --bench data_path --bench masks
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
# Run without cargo, which would wait for the build of all other tests.
PROCESSES = cd crates/alpheus && CARGO_MANIFEST_DIR=$(CURDIR)/crates/alpheus $(TARGET)/processes
export CARGO_TERM_COLOR ?= auto

# Real recorded data, never part of the repository; see CONTRIBUTING.md.
ifeq ($(strip $(ALPHEUS_REAL_DATA)),)
unexport ALPHEUS_REAL_DATA
else
export ALPHEUS_REAL_DATA
endif

# $(call need,COMMAND:PACKAGE ...): each command is there, or its package comes.
define need
	missing=""; \
	for pair in $(1); do \
	  command -v "$${pair%%:*}" >/dev/null || missing="$$missing $${pair#*:}"; \
	done; \
	$(install)
endef

define install
	if [ -n "$$missing" ]; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing:$$missing"; \
	    apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	  else \
	    echo "error: this machine lacks:$$missing" >&2; \
	    echo "help: sudo apt-get install --no-install-recommends$$missing" >&2; \
	    exit 1; \
	  fi; \
	fi
endef

.PHONY: help
help: ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

.PHONY: demo
# Without the parts that it does not show, and without what only a second build or a debugger needs,
# so that the first minutes are few.
demo: export CARGO_INCREMENTAL ?= 0
demo: export CARGO_PROFILE_DEV_DEBUG ?= 0
demo: compiler ## the guided first minutes: encrypted streams become statistics that policies allow
	$(CARGO) run --package alpheus --no-default-features -- demo

.PHONY: test
# Steps run beside each other where they can. Each writes target/steps/NAME.log. Everything is
# built once here, so what would speed up a second build (incremental compilation, many small
# units) only costs time; set both to what you like to keep what `cargo test` has built.
test: export CARGO_INCREMENTAL ?= 0
test: export CARGO_PROFILE_TEST_CODEGEN_UNITS ?= 4
# The compiler with clippy's lints in it builds the tests, so no code is read twice.
test: export RUSTC_WORKSPACE_WRAPPER ?= clippy-driver
test: export RUSTFLAGS ?= -D warnings
test: export RUSTDOC ?= $(CURDIR)/.ci/rustdoc
# librdkafka's build reads CFLAGS alone. All other libraries in C let the other two overrule it, and
# are optimised as their packages are in the profile of tests.
ifeq ($(origin CFLAGS),undefined)
test: export CFLAGS := -O0 -g0
test: export HOST_CFLAGS := -g0
test: export TARGET_CFLAGS := -g0
endif
test: tools ## everything that must hold before a change lands
	@rm -rf target/steps; mkdir -p target/steps
	@TEST_SKIPS=$(CURDIR)/target/steps/skips $(MAKE) --jobs 5 \
	  step-rules step-vectors step-site step-jvm step-processes step-others step-lean step-js step-python step-c
	@$(PYTHON) .ci/count.py target/steps jvm

# $(call step,NAME,PREFIX): runs `PREFIX make NAME`, and shows what it printed only if it fails. It says
# for how long, and how many seconds processors worked for it.
define step
	@echo "start   $(1)"; TIMEFORMAT='%R s, of processors %U and %S s'; \
	if { time $(2) $(MAKE) --jobs 1 $(1) >target/steps/$(1).log 2>&1; } 2>target/steps/$(1).time; then \
	  echo "passed  $(1), $$(cat target/steps/$(1).time)"; \
	else \
	  cat target/steps/$(1).log; echo "FAILED  $(1), $$(cat target/steps/$(1).time)" >&2; exit 1; \
	fi
endef

.PHONY: installs
installs: web browser jdk js-tools c-tools .venv/ready .venv/site/ready # what the build does not need

.PHONY: step-installs step-rules step-build step-broker step-vectors step-site step-jvm step-processes step-build-others step-others step-lean step-js step-python step-c
# Downloads beside the build. All that is installed by apt comes here or before: it serves one at a time.
step-installs:
	$(call step,installs)
step-rules:
	$(call step,rules)
# Tests of whole processes wait more than they compute, so they run while all other tests are built.
step-build:
	$(call step,build-processes)
step-broker: step-installs
	$(call step,broker)
step-vectors: step-rules step-installs
	$(call step,vectors,$(YIELDING))
# A few seconds of a processor. A page, a link or a setting that the generator refuses fails it.
step-site: step-rules step-installs
	$(call step,site,$(YIELDING))
step-jvm: step-broker
	$(call step,jvm,$(YIELDING))
step-processes: step-build step-broker
	$(call step,processes)
step-build-others: step-build
	$(call step,build-others,$(YIELDING))
step-others: step-build-others step-broker
	$(call step,others,$(YIELDING))
step-lean: step-build-others
	$(call step,lean,$(YIELDING))
# These have clocks too, and browsers starve beside the tests of whole processes: they wait for those, and
# what computes gives way to them.
step-js: step-processes step-installs
	$(call step,js)
step-python: step-processes step-build-others step-js
	$(call step,python)
step-c: step-processes step-build-others step-js
	$(call step,c)

.PHONY: rules
rules: tools ## formatting and house rules, which need no build
	$(CARGO) fmt --all --check
	$(CARGO) xtask tidy
	cd .ci && $(PYTHON) -m unittest -q test_count test_drills test_fuzz test_guards test_mutants test_pictures test_programs test_runbook
	$(PYTHON) .ci/site.py --check
	$(PYTHON) .ci/pictures.py --check
	$(PYTHON) bench/limits.py --check

.PHONY: lint
lint: tools lean ## what `make test` holds code to, without tests: lints, and links in documentation
	$(CARGO) clippy --workspace --all-targets --features $(FEATURES) --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" $(CARGO) doc --workspace --features $(FEATURES) --no-deps --locked --quiet --document-private-items

.PHONY: lean
# In a folder of its own: else whatever builds beside it waits for it.
lean: tools # the demo's build, without default features, and the library for C, as `make dist` builds it alone
	$(CARGO) clippy --package alpheus --no-default-features --locked --target-dir $(TARGET)/lean -- -D warnings
	$(CARGO) clippy --package alpheus-c --locked --target-dir $(TARGET)/lean -- -D warnings

.PHONY: build-processes
# `target/processes` is a link to the tests of whole processes.
build-processes: tools
	$(CARGO) test --workspace --features $(FEATURES) --locked --no-run --test processes \
	  --message-format json-render-diagnostics | $(PYTHON) .ci/programs.py link processes $(TARGET)/processes

.PHONY: unit
unit: tools web browser broker processes others ## unit, property, protocol and whole-system tests

.PHONY: processes processes-waiting processes-computing
# More of them than there are cores run at once. Those that wait longest start at once, or the end
# waits for them.
processes: build-processes .venv/opentelemetry/ready .venv/openlineage/ready
	@if [ -z "$${ALPHEUS_REAL_DATA:-}" ]; then \
	  echo "note: ALPHEUS_REAL_DATA is not set: tests over real recordings are skipped"; \
	fi
	@$(MAKE) --jobs 2 --keep-going --output-sync=target processes-waiting processes-computing
processes-waiting:
	$(PROCESSES) --test-threads $(WAITING_THREADS) $(WAITING)
processes-computing:
	$(PROCESSES) --test-threads $(TEST_THREADS) $(WAITING:%=--skip %)

.PHONY: others build-others others-programs others-doc
others: build-others
	@$(MAKE) --jobs 2 --keep-going --output-sync=target others-programs others-doc
build-others: tools
	$(CARGO) test --workspace --features $(FEATURES) --locked --no-run $(OTHERS) \
	  --message-format json-render-diagnostics >$(TARGET)/others.json
	$(CARGO) build --profile test --workspace --features $(FEATURES) --locked $(BUILT)
others-programs:
	RUST_TEST_THREADS=$(OTHER_THREADS) $(PYTHON) .ci/programs.py run 3 <$(TARGET)/others.json
others-doc:
	$(CARGO) test --workspace --features $(FEATURES) --locked --no-fail-fast --doc

.PHONY: vectors
vectors: tools .venv/ready ## regenerate the test vectors with independent Python and compare
	$(CARGO) xtask vectors --check

# The wheel is of the binaries that `make others` has made for tests: nothing is compiled for it.
# $(call wheel,ENVIRONMENT): built, and installed there.
define wheel
	$(CARGO) build --profile test --workspace --features $(FEATURES) --locked --bin alpheus --example native --example known_answers
	$(1)/bin/python bindings/python/wheel.py $${CARGO_TARGET_DIR:-target}/debug target/wheel
	$(1)/bin/pip install --quiet --disable-pip-version-check --no-deps --force-reinstall target/wheel/*.whl
	mkdir -p target/known-answers
	cp $${CARGO_TARGET_DIR:-target}/debug/examples/libknown_answers.so target/known-answers/known_answers.abi3.so
	cd bindings/python && MYPY_CACHE_DIR=$(CURDIR)/target/mypy $(CURDIR)/$(1)/bin/mypy --package alpheus
	cd bindings/python && MYPY_CACHE_DIR=$(CURDIR)/target/mypy $(CURDIR)/$(1)/bin/mypy examples
endef

.PHONY: c-tools
c-tools: compiler
	@$(call need,g++:g++ pkg-config:pkg-config valgrind:valgrind nm:binutils)

.PHONY: c
# The libraries are what `make others` has built, the program is that of `make build-processes`.
c: tools c-tools ## the C interface: vectors, misuse, memory checkers, and live processes
	$(CARGO) build --profile test --workspace --features $(FEATURES) --locked --bin alpheus --example alpheus --example alpheus_known
	@$(MAKE) --jobs 2 --keep-going --output-sync=target c-library c-live
.PHONY: c-library c-live
c-library:
	cd bindings/c/tests && $(PYTHON) -B -m unittest -v test_c
# It mostly waits for clocks.
c-live:
	cd bindings/c/tests && C_BUILD=c-live $(PYTHON) -B -m unittest -v test_live

.PHONY: python
python: tools .venv/python/ready ## the Python package: a wheel, its types, its tests in an environment of its own
	$(call wheel,.venv/python)
	cd bindings/python && KNOWN_ANSWERS=$(CURDIR)/target/known-answers $(CURDIR)/.venv/python/bin/pytest

.PHONY: python-long
python-long: tools .venv/python-long/ready ## the same with pandas, Polars, Arrow, and every notebook
	$(call wheel,.venv/python-long)
	cd bindings/python && KNOWN_ANSWERS=$(CURDIR)/target/known-answers $(CURDIR)/.venv/python-long/bin/pytest tests tests/long

.venv/python/ready: bindings/python/requirements-tests.txt .venv/ready
	$(call environment,--requirement $<)

.venv/python-long/ready: bindings/python/requirements-long.txt bindings/python/requirements-tests.txt .venv/ready
	$(call environment,--requirement bindings/python/requirements-tests.txt --requirement $<)

.PHONY: interop
# Its libraries are many: the first build takes some seven minutes of a processor.
interop: tools jdk .venv/interop/ready ## the results database, with psql, dbt, pandas, DuckDB, psycopg, ADBC and JDBC
	@$(call need,psql:postgresql-client openssl:openssl)
	cd crates/results-database && $(DATABASE_CARGO) fmt --check && $(DATABASE_CARGO) test --locked && $(DATABASE_CARGO) build --locked
	$(CARGO) build --profile test --workspace --features $(FEATURES) --locked --bin alpheus
	cd jvm && ./mvnw -q --batch-mode --non-recursive dependency:copy -Dartifact=org.postgresql:postgresql:$(JDBC) -DoutputDirectory=../target/jdbc
	cd crates/results-database/tests && JDBC=$(CURDIR)/target/jdbc/postgresql-$(JDBC).jar \
	  ALPHEUS=$(TARGET)/debug/alpheus DATABASE=$(TARGET)/results-database/debug/alpheus-database \
	  $(CURDIR)/.venv/interop/bin/python -B -m unittest -v test_doors test_interop

JDBC := 42.7.7
# The compiler has clippy in it, and warnings are errors. Flags of other builds would compile all libraries again.
DATABASE_CARGO = env -u RUSTFLAGS -u CFLAGS -u HOST_CFLAGS -u TARGET_CFLAGS -u CARGO_PROFILE_TEST_CODEGEN_UNITS RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__ \
  CARGO_INCREMENTAL=0 CARGO_TARGET_DIR=$(TARGET)/results-database $(CARGO)

.venv/interop/ready: crates/results-database/tests/requirements.txt .venv/ready
	$(call environment,--requirement $<)

.PHONY: opendp
opendp: .venv/opendp/ready ## noise and accounting held to OpenDP, a second implementation
	.venv/opendp/bin/python vectors/compare_opendp.py

.venv/opendp/ready: vectors/requirements-opendp.txt .venv/ready
	$(call environment,--requirement $<)

# The SDK that tests of `alpheus otlp` send with.
.venv/opentelemetry/ready: vectors/requirements-opentelemetry.txt .venv/ready
	$(call environment,--requirement $<)

# OpenLineage's client, which reads the events of `alpheus evidence`.
.venv/openlineage/ready: vectors/requirements-openlineage.txt .venv/ready
	$(call environment,--requirement $<)

.PHONY: bench
bench: compiler ## the figures, with their floors, as JSON
	$(CARGO) build --quiet --release --package alpheus --locked
	$(CARGO) run --quiet --release --package alpheus-bench --features pairing -- streams --format json
	$(CARGO) run --quiet --release --package alpheus-bench --features pairing -- pass --format json
	$(CARGO) run --quiet --release --package alpheus-bench --features pairing -- board --format json
	$(CARGO) run --quiet --release --package alpheus-bench --features pairing -- tables --format json

.PHONY: model
model: compiler ## every request, crash and restore around one window's opening, within bounds
	$(CARGO) run --quiet --release --package alpheus-model --locked

.PHONY: mutants
# CRATE=alpheus-crypto SHARDS=3 make mutants: the next three shards of that crate. AGAIN=1: those again that were missed.
mutants: compiler ## changes the code of one crate at random places: do its tests notice? Figures add up over runs
	@$(call need,git:git prlimit:util-linux $(PYTHON):python3)
	@if [ -n "$${CRATE:-}" ] && ! $(CARGO) mutants --version >/dev/null 2>&1; then \
	  echo "error: this machine lacks cargo-mutants" >&2; \
	  echo "help: cargo install --locked cargo-mutants@$(MUTANTS)" >&2; exit 1; \
	fi
	@$(PYTHON) .ci/mutants.py $${CRATE:-} --shards $${SHARDS:-1} $${AGAIN:+--again}

.PHONY: guards
# CRATE=alpheus-anonymous-board make guards: those of that crate. FIND=1: names a test for each guard that has none.
guards: compiler ## takes each listed guard out of the protocols' code: does the test that is named for it go red?
	@$(call need,git:git $(PYTHON):python3)
	@$(PYTHON) .ci/guards.py $${CRATE:-} $${FIND:+--find}

.PHONY: drills
# DRILLS="outages --long" make drills: of these only, or also those that take hours. A table is written to bench/results.
drills: tools web browser broker package-tools ## the long forms of tests, with a table of what they showed: hours
	@$(call need,valgrind:valgrind)
	$(PYTHON) drills/run.py $${DRILLS:-}

.PHONY: totals
totals: compiler ## a million totals to their law, and predicted errors, more closely than `make test`
	ALPHEUS_TOTALS=250000 ALPHEUS_MEASURED_WITHIN=0.0125 \
	  $(CARGO) test --package alpheus-encrypted-stream --test all -- noise::totals noise::errors

.PHONY: kills
kills: compiler ## replays killed at random points: `make test` tries twenty seeds, this two hundred
	ALPHEUS_KILLS=200 $(CARGO) test --package alpheus --test processes -- kill:: power::

.PHONY: fuzz
# TARGETS="frame query" SECONDS_EACH=600 make fuzz: ten minutes for each of these two. The first build takes many minutes of a
# processor. It can be stopped at any time: what was found is kept, and the next run begins with what has had the least time.
fuzz: tools ## fuzz every decoder for a minute each, with libFuzzer. Figures add up over runs
	@$(PYTHON) .ci/fuzz.py $${TARGETS:-} --seconds $(SECONDS_EACH)

# Node 18.19 or later; Debian 12 has it. Libraries come by npm, as the lock files say.
.PHONY: js-tools
js-tools: bindings/js/node_modules/.package-lock.json
	@node -e 'const [major, minor] = process.versions.node.split(".").map(Number); process.exit(major > 18 || (major === 18 && minor >= 19) ? 0 : 1)' \
	  || { echo "error: this machine's Node is older than 18.19" >&2; exit 1; }

bindings/js/node_modules/.package-lock.json: bindings/js/package-lock.json
	@$(call need,node:nodejs npm:npm)
	cd bindings/js && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

.PHONY: js
# Processes under test are those of `make build-processes`.
js: js-tools browser ## the package for browsers and Node: build and test it, in Chromium too
	cd bindings/js && npm run --silent build && npm test --silent

.PHONY: js-long
js-long: js-tools browser ## the same with Vite, the README by npm itself, and figures beside DAP's client
	cd bindings/js && npm run --silent build && npm ci --prefix test/vite --no-audit --no-fund --loglevel=error \
	  && npm ci --prefix bench/dap --no-audit --no-fund --loglevel=error
	cd bindings/js && LONG=1 node --test test/*.test.js test/*.long.js && node bench/main.js

.PHONY: jdk
jdk:
	@$(call need,javac:openjdk-17-jdk-headless curl:curl unzip:unzip)

.PHONY: jvm
# Fetches Maven, Kafka and Flink when it first runs. Tests of Kafka and of Flink mostly wait, so both run at once.
jvm: jdk ## the JVM side: build and test it with Maven
	@rm -rf jvm/*/target/*-reports
	cd jvm && ./mvnw -q --batch-mode --no-transfer-progress --threads 2 verify
	cd examples/scale && $(PYTHON) -m unittest -q test_scale

.PHONY: scale-demo
# MINUTES=5 make scale-demo: so many minutes of rows.
scale-demo: scale-jvm kafka-build ## Kafka, a registry, Flink and Alpheus on this machine; every window against the truth
	$(CARGO) build --package alpheus --no-default-features --features kafka --locked
	$(PYTHON) examples/scale/demo.py --alpheus "$${CARGO_TARGET_DIR:-target}/debug/alpheus" \
	  --registry jvm/demo/target/registry --minutes $${MINUTES:-2}

.PHONY: bench-scale
bench-scale: scale-jvm compiler ## the job beside jobs without encryption, as JSON: an hour
	@mkdir -p target
	$(CARGO) build --quiet --release --package alpheus --package alpheus-bench --locked
	java -Xmx3g -cp "jvm/bench/target/classes:$$(cat jvm/bench/target/classpath)" alpheus.flink.BenchMain . \
	  "$${CARGO_TARGET_DIR:-target}/release/alpheus" target/scale.json
	@echo "target/scale.json"

.PHONY: scale-jvm
# Jars, the class path of each process, and a registry, all by Maven.
scale-jvm:
	@$(call need,javac:openjdk-17-jdk-headless curl:curl unzip:unzip $(PYTHON):python3)
	cd jvm && ./mvnw -q --batch-mode --no-transfer-progress -DskipTests package \
	  dependency:build-classpath -Dmdep.outputFile=target/classpath
	@printf ':%s' "$(CURDIR)/jvm/test-broker/target/classes" >> jvm/test-broker/target/classpath
	test -d jvm/demo/target/registry || (cd jvm && ./mvnw -q --batch-mode --no-transfer-progress --non-recursive \
	  dependency:unpack -Dartifact=io.apicurio:apicurio-registry-app:2.6.13.Final:tar.gz:all \
	  -DoutputDirectory=demo/target/registry)

# What librdkafka is compiled and linked with.
.PHONY: kafka-build
kafka-build: compiler
	@missing=""; for header in openssl/ssl.h zlib.h; do \
	  printf '#include <%s>\n' $$header | cc -E - >/dev/null 2>&1 || missing=" libssl-dev zlib1g-dev"; \
	done; $(install)
	@$(call need,g++:g++ make:make pkg-config:pkg-config)

.PHONY: broker
# Tests in Rust start them; without them they say that they are skipped.
broker: jdk ## a Kafka broker, the Flink job and a program with OpenTelemetry for tests: fetches them with Maven
	cd jvm && ./mvnw -q --batch-mode --no-transfer-progress -pl test-broker,otlp-program,flink-job -am compile \
	  dependency:build-classpath -Dmdep.outputFile=target/classpath
	@for module in test-broker otlp-program; do \
	  printf ':%s' "$(CURDIR)/jvm/$$module/target/classes" >> jvm/$$module/target/classpath; done

.PHONY: site
# The pages lie in target/site/html. Their links are checked first, and again by the generator. With
# `--quiet` it would not count its warnings, and strict mode would refuse nothing.
site: .venv/site/ready ## the documentation as one static site, with search
	$(PYTHON) .ci/site.py target/site
	cd target/site && NO_MKDOCS_2_WARNING=1 $(CURDIR)/.venv/site/bin/mkdocs build
	$(PYTHON) .ci/site.py --built target/site/html
	@echo "target/site/html/index.html"

.venv/site/ready: .ci/requirements-site.txt .venv/ready
	$(call environment,--requirement $<)

.PHONY: deploy
# Not part of `make test` yet.
deploy: .venv/deploy/ready ## check the files of deploy/, as far as this machine can
	.venv/deploy/bin/python deploy/check.py
	@$(call need,promtool:prometheus)
	promtool check rules deploy/prometheus/alerts.yaml
	promtool test rules deploy/prometheus/alerts_test.yaml

# A scene of people, watches and consoles, played for some minutes before a real browser.
.PHONY: pictures
pictures: build-processes browser ## the pictures in docs/pages, of the pages as they are now
	rm -rf target/pictures && mkdir -p target/pictures
	export CONSOLE_PICTURES=$(CURDIR)/target/pictures GUIDE_PICTURES=$(CURDIR)/docs/pages TEST_SKIPS=$(CURDIR)/target/pictures/skips; \
	  $(PROCESSES) --ignored console::scene
	@if [ -s target/pictures/skips ]; then cat target/pictures/skips >&2; exit 1; fi
	$(PYTHON) .ci/pictures.py --made
	@echo "docs/pages; all states at 360 and 1280 pixels, light and dark: target/pictures"

.venv/deploy/ready: deploy/requirements.txt .venv/ready
	$(call environment,--requirement $<)

.PHONY: dist
# DIST_SIGNING_KEY=FILE make dist: signed checksums, by a key of ssh-keygen. On Debian, for amd64.
dist: kafka-build .venv/python/ready js-tools ## Debian packages, image, tarball, wheel, npm package, bill of materials, checksums: in target/dist
	@$(call need,dpkg-shlibdeps:dpkg-dev objdump:binutils ssh-keygen:openssh-client git:git $(PYTHON):python3)
	cd deploy/packages && $(PYTHON) -B -m unittest -q test_packages
	WHEEL_PYTHON=$(CURDIR)/.venv/python/bin/python nice -n 10 $(PYTHON) -B deploy/packages/dist.py
	rm -rf target/wheel-trial && $(PYTHON) -m venv target/wheel-trial
	target/wheel-trial/bin/pip install --quiet --disable-pip-version-check target/dist/*.whl
	target/wheel-trial/bin/python -B bindings/python/tests/run_readme.py bindings/python/README.md

.PHONY: packages
packages: package-tools dist ## install and run what `make dist` leaves, on bare Debian systems
	sh drills/packages.sh

.PHONY: package-tools
package-tools:
	@$(call need,debootstrap:debootstrap umoci:umoci systemd-analyze:systemd systemd-nspawn:systemd-container curl:curl)

.PHONY: clean
clean: ## remove what was built
	rm -rf target .venv jvm/*/target bindings/js/dist bindings/js/node_modules

.PHONY: rust
rust:
	@command -v $(CARGO) >/dev/null || { \
	  echo "error: this machine lacks Rust" >&2; \
	  echo "help: install it from https://rustup.rs (rust-version in Cargo.toml says which)" >&2; \
	  exit 1; }

# A linker and the C library's headers: `cc` alone does not bring those.
.PHONY: compiler
compiler: rust
	@$(call need,cc:gcc cc:libc6-dev)

# The pass's guide needs a real nginx, curl and Python, clocks are set by faketime, valgrind counts
# instructions, and Prometheus answers the dashboard's queries. Without them tests say that they are
# skipped, so a machine that is not ours to change still passes.
.PHONY: web
web:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then $(call need,nginx:nginx-light faketime:faketime curl:curl valgrind:valgrind prometheus:prometheus $(PYTHON):python3); fi

# librdkafka is built from its source, and takes the system's OpenSSL.
.PHONY: librdkafka
librdkafka: compiler
	@$(call need,c++:g++ make:make pkg-config:pkg-config)
	@missing=""; \
	for pair in libssl:libssl-dev zlib:zlib1g-dev; do \
	  pkg-config --exists "$${pair%%:*}" || missing="$$missing $${pair#*:}"; \
	done; \
	$(install)

.PHONY: tools
tools: compiler librdkafka
	@$(call need,git:git $(PYTHON):python3)

# The console is tested in a real browser.
.PHONY: browser
browser: target/axe/axe.min.js
	@$(call need,chromedriver:chromium-driver)

# What its pages are checked with; docs/decisions/0038 says why by pip.
target/axe/axe.min.js: crates/alpheus/tests/axe/requirements.txt .venv/ready
	@rm -rf target/axe && mkdir -p target/axe
	.venv/bin/pip download --quiet --disable-pip-version-check --no-deps --require-hashes --requirement $< --dest target/axe
	cd target/axe && $(CURDIR)/.venv/bin/python -m zipfile --extract *.whl . && cp axe_playwright_python/axe.min.js .
	@touch $@

# $(call environment,REQUIREMENTS): a Python environment of its own. Its file `ready` comes last, so that one
# that was interrupted is made again.
define environment
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check $(1)
	touch $@
endef

# Generators of vectors may use libraries; the repository pins them.
.venv/ready: vectors/requirements.txt
	@missing=""; $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || missing=" python3-venv"; $(install)
	rm -rf .venv
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet --disable-pip-version-check --requirement vectors/requirements.txt
	touch $@

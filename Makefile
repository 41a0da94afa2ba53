# The only entry point, for people and for CI. `make` alone prints the targets below; a text
# behind `##` is a target's line in that table.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
export CLIPPY_CONF_DIR := $(CURDIR)/protocol-tests/lint
# The compat tests share two cores with Java servers: a few scenarios at a time.
COMPAT_THREADS ?= 2

.PHONY: help
help:
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: check
check: cargo ## compile everything, make nothing
	cargo check --all-targets

.PHONY: quick
quick: cargo ## unit tests, protocol-tests and simulation seeds: no Java, no network (T=filter)
	cargo test --lib --bins --test protocol -- $(T)
	$(if $(T),,cargo test --test sim)

.PHONY: test
test: cargo java ## everything: format, lints, docs, quick, compat, suite-quick; what CI runs (T=filter)
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --quiet
	$(MAKE) --no-print-directory quick compat $(if $(T),,suite-quick)

.PHONY: run
run: cargo ## build, format ./data if it is new, start one controller on it
	cargo build
	@compat/run.sh

.PHONY: demo
demo: cargo java ## kraftd and a real Kafka broker: create a topic, produce, consume, show the quorum
	cargo build
	@compat/demo.sh

.PHONY: fuzz
fuzz: cargo ## one fuzz target for a while (T=image_ops SECS=60); needs nightly and cargo-fuzz
	cargo +nightly fuzz run --fuzz-dir protocol-tests/fuzz $(or $(T),image_ops) -- \
	  -max_total_time=$(or $(SECS),60)

.PHONY: fix
fix: cargo ## apply lints' suggestions and the format: the one target that writes to the tree
	cargo clippy --fix --allow-dirty --allow-staged --all-targets
	cargo fmt

.PHONY: sim
sim: cargo ## deterministic simulation: new seeds for TIME=60 seconds, one with SEED=n, or SEEDS=n FROM=m
	cargo test --profile sim --test sim -- $(if $(SEED),--seed $(SEED),$(if \
	  $(SEEDS),--seeds $(SEEDS) --from $(or $(FROM),1),--seconds $(or $(TIME),60)))

.PHONY: golden
golden: cargo ## rewrite the scripted traces and tables; then `git diff` is the review
	GOLDEN=1 cargo test --test protocol -- scenario traffic::versions

.PHONY: fixtures
fixtures: java ## record fixtures/ again from real Kafka processes (WHAT=storage|answers|quotas|directories|full|batches|traffic|quorum|records|config|levels|authorizer|manifest)
	compat/record.sh $(WHAT)

.PHONY: compat
compat: cargo java ## kraftd beside real Kafka brokers, controllers and tools (T=filter)
	compat/jars.sh 4.4.0 3.9.2 4.0.2 4.1.2 4.2.1 4.3.1 shell-4.3.1
	cargo test --test compat -- --test-threads=$(COMPAT_THREADS) $(T)

.PHONY: suite
suite: cargo java python ## Kafka's own integration tests with kraftd as every controller (T=area or class, JOBS=2, OUT=)
	cargo build --release --bin kraftd
	@T="$(T)" JOBS="$(JOBS)" OUT="$(OUT)" compat/suite.sh target/release/kraftd handed.tsv

.PHONY: suite-quick
suite-quick: cargo java python ## the few of them that make test runs, with the debug binary
	cargo build
	@T="$(T)" JOBS="$(JOBS)" OUT="$(OUT)" compat/suite.sh target/debug/kraftd quick.tsv

.PHONY: quorum
quorum: cargo java ## quorums of kraftd and Java controllers: every fault with each kind leading
	compat/jars.sh 4.4.0 3.9.2
	QUORUM=full cargo test --test compat -- --test-threads=1 --nocapture quorum::

.PHONY: ladder
ladder: cargo java ## every metadata.version, one after the other, with a Java take-over at each
	compat/jars.sh 4.4.0 3.9.2
	LADDER=full cargo test --test compat -- --test-threads=1 --nocapture ladder::

.PHONY: diff-java
diff-java: cargo java ## chance's requests to Java's controller and kraftd, answers and records compared (SEED=n COUNT=5000)
	compat/jars.sh 4.4.0
	DIFF_SEED=$(or $(SEED),1) DIFF_COUNT=$(or $(COUNT),5000) cargo test --test compat -- --nocapture \
	  differential::java_and_kraftd

.PHONY: bench
bench: cargo java ## beside Java's controller, in one run (WHAT="idle start create scale failover quorum-create fencing heartbeats creates", SCALE=partitions)
	cargo build --release --bin kraftd --example generate
	@compat/bench.sh

.PHONY: steps
steps: cargo ## how long the core is busy at once with each event of a large cluster (SCALE=1000000)
	cargo run --release --example steps -- $(or $(SCALE),1000000)

.PHONY: release
release: cargo ## the optimised binary and its size
	cargo build --release
	@ls -lh target/release/kraftd | awk '{print $$9, $$5}'

# Each missing tool is one sentence and a failure, never a test that is silently left out.
.PHONY: cargo
cargo:
	@command -v cargo >/dev/null || { echo "kraftd is built with Rust 1.95 or newer: 'cargo' is not in PATH." >&2; exit 1; }

.PHONY: java
java:
	@command -v javac >/dev/null || { echo "kraftd is tested against real Kafka and needs a JDK 17 or newer: 'javac' is not in PATH." >&2; exit 1; }
	@command -v mvn >/dev/null || { echo "kraftd is tested against real Kafka and needs Maven to fetch it: 'mvn' is not in PATH." >&2; exit 1; }

.PHONY: python
python:
	@command -v python3 >/dev/null || { echo "Kafka's own integration tests are run by a Python script: 'python3' is not in PATH." >&2; exit 1; }

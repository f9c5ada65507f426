# `make demo` needs Rust and a C compiler; `make test` needs Node.js 18 or newer as well, for circom
# and snarkjs, Go, for nats-server and a server that speaks S3, which tests run, a C++ compiler, and
# Python with pip, for the compiler of the CUDA kernels. Nothing is installed system-wide.

CARGO ?= cargo
INTEROP = crates/cli/tests/circom

.PHONY: help demo build test nats-server s3-server cuda-toolkit interop-tools lint docs docs-check operations-tools operations-check page-check fmt cuda-check bench bench-cluster bench-kernels bench-snarkjs clean zkpu-test zkpu-conform zkpu-bench zkpu-formal zkpu-resources zkpu-rtl zkpu-linux

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Prove the first 32 headers of Bitcoin's main chain, verify and emit in order
	$(CARGO) build --profile demo --locked -p proofmill
	@$${CARGO_TARGET_DIR:-target}/demo/proofmill demo

build: ## Build the program, optimised
	$(CARGO) build --release --locked -p proofmill

test: interop-tools nats-server s3-server cuda-toolkit ## Run every test
	CARGO="$(CARGO)" python3 -B .ci/run_tests.py --workspace --locked --lib --bins --tests
	$(CARGO) test --workspace --locked --no-fail-fast --doc

interop-tools: $(INTEROP)/node_modules/.package-lock.json ## Install circom and snarkjs for the tests

$(INTEROP)/node_modules/.package-lock.json: $(INTEROP)/package.json $(INTEROP)/package-lock.json
	@command -v npm > /dev/null || { echo "error: npm is not there; circom and snarkjs, which the \
	tests run, need Node.js 18 or newer with npm: https://nodejs.org" >&2; exit 1; }
	cd $(INTEROP) && npm ci && touch node_modules/.package-lock.json

NATS_SERVER = crates/nats-server/bin/nats-server
NATS_VERSION = v2.15.2

nats-server: $(NATS_SERVER)-$(NATS_VERSION) ## Install nats-server for the tests and experiments

$(NATS_SERVER)-$(NATS_VERSION):
	@command -v go > /dev/null || { echo "error: go is not there; nats-server, which the tests run, \
	is built with Go: https://go.dev/dl" >&2; exit 1; }
	GOBIN=$(CURDIR)/crates/nats-server/bin go install github.com/nats-io/nats-server/v2@$(NATS_VERSION)
	@touch $@

S3_SERVER = crates/bus/bin/gofakes3
S3_VERSION = v1.2.0

s3-server: $(S3_SERVER)-$(S3_VERSION) ## Install a server that speaks S3 for the tests

$(S3_SERVER)-$(S3_VERSION):
	@command -v go > /dev/null || { echo "error: go is not there; the S3 server, which the tests \
	run, is built with Go: https://go.dev/dl" >&2; exit 1; }
	GOBIN=$(CURDIR)/crates/bus/bin go install github.com/johannesboyne/gofakes3/cmd/gofakes3@$(S3_VERSION)
	@touch $@

CUDA_TOOLKIT = crates/accelerator/toolkit
NVRTC_VERSION = 13.0.88

cuda-toolkit: $(CUDA_TOOLKIT)/.nvrtc-$(NVRTC_VERSION) ## Install NVRTC, which compiles the CUDA kernels for a test

$(CUDA_TOOLKIT)/.nvrtc-$(NVRTC_VERSION):
	@python3 -m pip --version > /dev/null || { echo "error: pip is not there; NVRTC, with which the \
	tests compile the CUDA kernels, is a package of PyPI: https://pip.pypa.io" >&2; exit 1; }
	python3 -m pip install --quiet --no-deps --upgrade --target $(CUDA_TOOLKIT) \
	  nvidia-cuda-nvrtc==$(NVRTC_VERSION)
	@touch $@

PAGE_CHECK = web/check

page-check: $(PAGE_CHECK)/node_modules/.package-lock.json ## Open the console and the simulator page in a browser and check them
	$(CARGO) build --locked -p proofmill
	cd $(PAGE_CHECK) && PROOFMILL=$${PROOFMILL:-$(CURDIR)/target/debug/proofmill} node --test console.mjs simulator.mjs

$(PAGE_CHECK)/node_modules/.package-lock.json: $(PAGE_CHECK)/package.json $(PAGE_CHECK)/package-lock.json
	@command -v npm > /dev/null || { echo "error: npm is not there; the browser that opens the page \
	is a package of npm, which comes with Node.js 20.11 or newer: https://nodejs.org" >&2; exit 1; }
	cd $(PAGE_CHECK) && npm ci && touch node_modules/.package-lock.json

zkpu-test: ## Simulate the MSM accelerator, core and system on chip, against its oracle, with lint and coverage
	$(MAKE) --no-print-directory -C hardware/zkpu test

zkpu-conform: ## The conformance suite on the functional model over NVMe/TCP, products of up to 2^16 points
	$(CARGO) test -p proofmill-zkpu --test conformance -- --ignored --nocapture

zkpu-bench: ## Cycles a point of the simulated core, and its cycle model (about 20 minutes)
	$(MAKE) -C hardware/zkpu bench

zkpu-formal: ## Proofs about the core's scheduler; mutated schedulers must fail
	$(MAKE) -C hardware/zkpu formal

zkpu-resources: ## What the core takes of an FPGA, by synthesis of its parts
	$(MAKE) -C hardware/zkpu resources

ZKPU_SIMULATOR = hardware/zkpu/build/soc-two/zkpu_sim

zkpu-rtl: ## The conformance suite on the simulated circuit, its firmware behind the NVMe/TCP target
	$(MAKE) --no-print-directory -C hardware/zkpu soc-real-sim
	ZKPU_BUILD=$(CURDIR)/hardware/zkpu/build $(CARGO) test --locked -p proofmill-zkpu --test circuit -- \
	  --ignored --test-threads 1
	ZKPU_BUILD=$(CURDIR)/hardware/zkpu/build $(CARGO) test --locked -p proofmill-zkpu --test conformance -- \
	  --test-threads 1 --skip more_costs_more --skip memory_that_does_not_suffice --skip is_found

zkpu-linux: ## A stock Debian kernel with nvme-cli, in QEMU, drives the model, then the simulated circuit
	$(MAKE) --no-print-directory -C hardware/zkpu soc-real-sim
	$(CARGO) build --locked -p proofmill
	python3 -B hardware/zkpu/linux/run.py --proofmill $${CARGO_TARGET_DIR:-target}/debug/proofmill --host-program
	python3 -B hardware/zkpu/linux/run.py --proofmill $${CARGO_TARGET_DIR:-target}/debug/proofmill --rtl $(ZKPU_SIMULATOR)

# Runs a test's program under compute-sanitizer, which CUDA's toolkit has.
SANITIZER = compute-sanitizer --error-exitcode 1 --tool

cuda-check: ## On a CUDA card: the kernels at small sizes under compute-sanitizer
	@command -v compute-sanitizer > /dev/null || { echo "error: compute-sanitizer is not there; it is a \
	part of CUDA's toolkit: https://developer.nvidia.com/cuda-downloads" >&2; exit 1; }
	@for tool in memcheck racecheck; do \
	  $(CARGO) --config "target.'cfg(all())'.runner = '$(SANITIZER) $$tool'" test --locked \
	    -p proofmill-accelerator --test conformance -- --test-threads 1 small_on_cards || exit 1; \
	done

lint: ## Formatting and lints, warnings refused
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

docs: ## The API documentation, warnings refused
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked

# The program that the documents are tried with; its own if none is named, as `make test` builds it.
DOCS_PROGRAM ?=

docs-check: ## Run the commands of README.md and docs/, and compare what they print
	python3 -B .ci/test_docs_check.py
	@test -n "$(DOCS_PROGRAM)" || $(CARGO) test --workspace --locked --no-run --test program
	python3 -B .ci/docs_check.py \
	  --program "$${DOCS_PROGRAM:-$${CARGO_TARGET_DIR:-target}/debug/proofmill}"

PROMTOOL = deploy/bin/promtool
# Prometheus 3.16.0: the modules of its versions 3 are called v0.3.
PROMTOOL_VERSION = v0.316.0

operations-tools: $(PROMTOOL)-$(PROMTOOL_VERSION) ## Install promtool, which checks and tests the alerts

# Without the service discoveries of clouds, which no check needs and which take long to compile.
$(PROMTOOL)-$(PROMTOOL_VERSION):
	@command -v go > /dev/null || { echo "error: go is not there; promtool, which tests the alerts, \
	is built with Go: https://go.dev/dl" >&2; exit 1; }
	GOBIN=$(CURDIR)/deploy/bin go install -tags remove_all_sd \
	  github.com/prometheus/prometheus/cmd/promtool@$(PROMTOOL_VERSION)
	@touch $@

# The program whose metrics are compared with docs/metrics.md; its own if none is named.
OPERATIONS_PROGRAM ?=

operations-check: operations-tools ## Test the alerts, and compare metrics, dashboards, rules and run books
	python3 -B .ci/test_check_operations.py
	$(PROMTOOL) check config deploy/prometheus/prometheus.yaml
	$(PROMTOOL) check rules --lint=all --lint-fatal deploy/prometheus/proofmill.rules.yaml
	$(PROMTOOL) test rules deploy/prometheus/proofmill.test.yaml
	@test -n "$(OPERATIONS_PROGRAM)" || $(CARGO) build --locked -p proofmill
	python3 -B .ci/check_operations.py --promtool $(PROMTOOL) \
	  --program "$${OPERATIONS_PROGRAM:-$${CARGO_TARGET_DIR:-target}/debug/proofmill}"

fmt: ## Format the code
	$(CARGO) fmt --all

bench: ## Run the experiments of docs/benchmarks.md (takes a few minutes)
	$(CARGO) build --release --locked -p proofmill-bench
	@for experiment in latency scaling throughput multi-queue ordering hostile; do \
	  $${CARGO_TARGET_DIR:-target}/release/proofmill-bench $$experiment || exit 1; \
	done

bench-cluster: ## Run the experiments of docs/experiments.md (about 15 minutes)
	$(CARGO) build --release --locked -p proofmill-bench -p proofmill
	@for experiment in "latency --bus jetstream --rate 100" "throughput --bus jetstream" \
	  "scaling --bus jetstream --dispatchers 1,2,4,8,16,32 --proof-ms 100,1000" \
	  "ordering --bus jetstream" "hostile --bus jetstream" \
	  "cluster priority --bus jetstream" "cluster affinity --bus jetstream" \
	  "cluster resize --bus jetstream" "cluster collectors --bus jetstream" \
	  "cluster recovery --bus jetstream" "cluster failover --bus jetstream" \
	  "cluster split-brain --bus jetstream" "cluster nodes --bus jetstream --servers 3" \
	  "cluster flood --bus jetstream" "cluster outage --bus jetstream" \
	  "cluster idle --bus jetstream" "cluster chaos"; do \
	  $${CARGO_TARGET_DIR:-target}/release/proofmill-bench $$experiment || exit 1; \
	done

BENCH_KERNELS = $${CARGO_TARGET_DIR:-target}/release/proofmill-bench
BENCH_FLAGS ?=

bench-kernels: ## The tables of docs/performance.md: arithmetic and prover against other libraries (about an hour)
	$(CARGO) build --release --locked -p proofmill-bench --features peers
	@set -e; run() { printf '\n### %s\n\n' "$$*"; $(BENCH_KERNELS) "$$@" --markdown $(BENCH_FLAGS); }; \
	for curve in bls12-381 bls12-377 bn254 grumpkin; do \
	  run msm --curve $$curve --log-n 16,18,20 --threads 1,2; \
	  run msm --curve $$curve --log-n 16,18,20 --prepared 4; \
	done; \
	for curve in bls12-381 bls12-377 bn254; do run msm --curve $$curve --group g2 --log-n 16; done; \
	for skew in zero-one mostly-bits equal small negative sparse; do \
	  run msm --log-n 18 --skew $$skew; \
	done; \
	for curve in bls12-381 bn254; do \
	  run ntt --curve $$curve --log-n 16,18,20 --threads 1,2; \
	  run groth16 --curve $$curve --circuit chain,sha256 --threads 1,2; \
	  run groth16 --curve $$curve --circuit chain,sha256 --threads 1,2 --prepared 4; \
	  run pairing --curve $$curve --pairs 1,8,64 --threads 1,2; \
	  run verify --curve $$curve --threads 1,2; \
	done; \
	run ipa --threads 1,2

bench-snarkjs: build interop-tools ## A circom circuit's proof from cold files, against snarkjs
	$(CARGO) build --release --locked -p proofmill-bench
	$(BENCH_KERNELS) snarkjs --threads $$(nproc) $(BENCH_FLAGS)

clean: ## Remove what was built
	$(CARGO) clean

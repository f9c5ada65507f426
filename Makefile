# `make demo` needs Rust and a C compiler; `make test` needs Node.js 18 or newer as well, for circom
# and snarkjs, Go, for nats-server and a server that speaks S3, which tests run, a C++ compiler,
# and Python with pip, for the compiler of the CUDA kernels and the simulator of the hardware. Nothing is installed system-wide.

CARGO ?= cargo
CONTRACTS = contracts
INTEROP = crates/cli/tests/circom

.PHONY: help chart-files demo demo-settle demo-settle-1000 contracts-tools build test simulations bitcoin-headers contracts-test settle-test geth nats-server s3-server cuda-toolkit cuda-registers interop-tools lint docs docs-check operations-tools operations-check page-check page-screenshots dist fmt cuda-check bench bench-cluster bench-kernels bench-snarkjs clean zkpu-test zkpu-test-all zkpu-conform zkpu-bench zkpu-formal zkpu-resources zkpu-rtl zkpu-linux

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Prove the first 32 headers of Bitcoin's main chain, verify and emit in order
	$(CARGO) build --profile demo --locked -p proofmill
	@$${CARGO_TARGET_DIR:-target}/demo/proofmill demo

demo-settle: contracts-tools geth ## The same, settled on an Ethereum node: a light client of Bitcoin, advanced in order
	$(CARGO) build --profile demo --locked -p proofmill
	@node contracts/demo.mjs $${CARGO_TARGET_DIR:-target}/demo/proofmill $(DEMO_SETTLE)

# Chunks of eight headers cost a quarter of the proofs and of the gas of chunks of two.
demo-settle-1000: contracts-tools geth ## The same with 1,000 later headers of Bitcoin's main network (about half an hour)
	$(CARGO) build --profile demo --locked -p proofmill
	node contracts/headers.mjs --from 32 --count 1000 --out target/bitcoin-headers-1000.hex
	@node contracts/demo.mjs $${CARGO_TARGET_DIR:-target}/demo/proofmill --headers target/bitcoin-headers-1000.hex \
	  --start 32 --chunk 8 --state .proofmill/demo-settle-1000 $(DEMO_SETTLE)

contracts-tools: $(CONTRACTS)/node_modules/.package-lock.json ## Install solc, anvil and ethers, for the contracts

build: ## Build the program, optimised
	$(CARGO) build --release --locked -p proofmill

test: interop-tools nats-server s3-server cuda-toolkit ## Run every test
	CARGO="$(CARGO)" python3 -B .ci/run_tests.py --workspace --locked --lib --bins --tests
	$(CARGO) test --workspace --locked --no-fail-fast --doc

simulations: ## Run 10,000 histories of the core and of the protocol between processes, ten times as many as `make test`
	SEEDS=10000 $(CARGO) test --workspace --locked --test simulation

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

BITCOIN_HEADERS ?= target/bitcoin-headers.hex

bitcoin-headers: ## Fetch 14,132 real headers of Bitcoin's main network, check them, write target/bitcoin-headers.hex
	node contracts/headers.mjs --out $(BITCOIN_HEADERS)

contracts-test: interop-tools $(CONTRACTS)/node_modules/.package-lock.json geth ## Test the Solidity contracts with real proofs, on anvil and on geth
	@test -n "$(PROOFMILL)" || $(CARGO) build --locked -p proofmill
	cd $(CONTRACTS) && \
	  PROOFMILL=$(abspath $(or $(PROOFMILL),$(or $(CARGO_TARGET_DIR),target)/debug/proofmill)) npm test

settle-test: $(CONTRACTS)/node_modules/.package-lock.json geth ## Test settlement on real nodes: kills, reorganisations, fees (about five minutes)
	@test -n "$(PROOFMILL)" || $(CARGO) build --locked -p proofmill
	cd $(CONTRACTS) && \
	  PROOFMILL=$(abspath $(or $(PROOFMILL),$(or $(CARGO_TARGET_DIR),target)/debug/proofmill)) npm run settle-test

$(CONTRACTS)/node_modules/.package-lock.json: $(CONTRACTS)/package.json $(CONTRACTS)/package-lock.json
	@command -v npm > /dev/null || { echo "error: npm is not there; solc and anvil, with which the \
	contracts are tested, are packages of npm, which comes with Node.js 20 or newer: https://nodejs.org" >&2; exit 1; }
	cd $(CONTRACTS) && npm ci && touch node_modules/.package-lock.json

GETH_PROGRAM = $(CONTRACTS)/bin/geth
GETH_VERSION = v1.17.10

geth: $(GETH_PROGRAM)-$(GETH_VERSION) ## Install geth, an Ethereum node, for the tests of the contracts

$(GETH_PROGRAM)-$(GETH_VERSION):
	@command -v go > /dev/null || { echo "error: go is not there; geth, on which the contracts are \
	tested, is built with Go: https://go.dev/dl" >&2; exit 1; }
	GOBIN=$(CURDIR)/$(CONTRACTS)/bin go install github.com/ethereum/go-ethereum/cmd/geth@$(GETH_VERSION)
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

cuda-registers: cuda-toolkit ## Compile the CUDA kernels, and write the registers that each takes
	UPDATE_REGISTERS=1 $(CARGO) test --locked -p proofmill-accelerator --lib registers

PAGE_CHECK = web/check

page-check: $(PAGE_CHECK)/node_modules/.package-lock.json ## Open the console, the pages of engine and verifier, and the simulator in a browser and check them
	$(CARGO) build --locked -p proofmill
	cd $(PAGE_CHECK) && PROOFMILL=$${PROOFMILL:-$(CURDIR)/target/debug/proofmill} node --test console.mjs views.mjs parts.mjs engine.mjs \
	  engines.mjs verifier.mjs simulator.mjs

page-screenshots: $(PAGE_CHECK)/node_modules/.package-lock.json ## Make the pictures of docs/console.md, from a browser
	$(CARGO) build --locked -p proofmill
	mkdir -p docs/images
	cd $(PAGE_CHECK) && SCREENSHOTS=$(CURDIR)/docs/images \
	  PROOFMILL=$${PROOFMILL:-$(CURDIR)/target/debug/proofmill} node --test console.mjs

$(PAGE_CHECK)/node_modules/.package-lock.json: $(PAGE_CHECK)/package.json $(PAGE_CHECK)/package-lock.json
	@command -v npm > /dev/null || { echo "error: npm is not there; the browser that opens the page \
	is a package of npm, which comes with Node.js 20.11 or newer: https://nodejs.org" >&2; exit 1; }
	cd $(PAGE_CHECK) && npm ci && touch node_modules/.package-lock.json

zkpu-test: ## Simulate the MSM accelerator, core and system on chip, against its oracle, with lint and coverage (part of test)
	$(MAKE) --no-print-directory -C hardware/zkpu -j$$(nproc) test

zkpu-test-all: ## The same with every variant: stand-in core, each multiplier in the core and the system on chip
	$(MAKE) --no-print-directory -C hardware/zkpu -j$$(nproc) test-all

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

# Helm reads no file outside of a chart's folder, and symbolic links do not survive every way to copy a checkout.
CHART_FILES = nats/cluster.conf prometheus/proofmill.rules.yaml
IN_CHART = deploy/helm/proofmill/files

chart-files: ## Copy what the chart has of deploy/ into it
	cp $(CHART_FILES:%=deploy/%) $(IN_CHART)

lint: ## Formatting and lints, warnings refused
	@for file in $(CHART_FILES); do cmp deploy/$$file $(IN_CHART)/$${file##*/} || \
	  { echo "error: the chart's copy of deploy/$$file is another: make chart-files" >&2; exit 1; }; done
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

HELM = deploy/bin/helm
HELM_VERSION = v3.22.0
# The Kubernetes that helm supposes without a cluster, as its releases set it; otherwise an old one.
HELM_FLAGS = $(foreach part,Major=1 Minor=37,-X helm.sh/helm/v3/pkg/chartutil.k8sVersion$(part))
KUBECONFORM = deploy/bin/kubeconform
KUBECONFORM_VERSION = v0.7.0
# PyYAML, for the checks of deploy/.
OPERATIONS_PYTHON = deploy/bin/python
PYYAML_VERSION = 6.0.3
# Releases of Kubernetes against which the chart is checked: the oldest that it allows, and a new one.
KUBERNETES_VERSIONS = 1.30.0 1.37.0
KUBERNETES_SCHEMAS_VERSION = 1.37.0
SCHEMAS = deploy/bin/schemas
SCHEMAS_MADE = $(SCHEMAS)/.made-$(KUBERNETES_SCHEMAS_VERSION)
KEDA_MODULE = github.com/kedacore/keda/v2@v2.21.0
PROMETHEUS_OPERATOR_MODULE = github.com/prometheus-operator/prometheus-operator@v0.85.0
CUSTOM_RESOURCES = \
  $(KEDA_MODULE)=config/crd/bases/keda.sh_scaledobjects.yaml \
  $(KEDA_MODULE)=config/crd/bases/keda.sh_triggerauthentications.yaml \
  $(PROMETHEUS_OPERATOR_MODULE)=example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml \
  $(PROMETHEUS_OPERATOR_MODULE)=example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml

OPERATIONS_TOOLS = $(PROMTOOL)-$(PROMTOOL_VERSION) $(HELM)-$(HELM_VERSION) $(KUBECONFORM)-$(KUBECONFORM_VERSION) \
  $(OPERATIONS_PYTHON)/.pyyaml-$(PYYAML_VERSION) $(SCHEMAS_MADE)

operations-tools: $(OPERATIONS_TOOLS) ## Install promtool, helm and kubeconform with its schemas, which check deploy/

# Without the service discoveries of clouds, which no check needs and which take long to compile.
$(PROMTOOL)-$(PROMTOOL_VERSION):
	@command -v go > /dev/null || { echo "error: go is not there; promtool, which tests the alerts, \
	is built with Go: https://go.dev/dl" >&2; exit 1; }
	GOBIN=$(CURDIR)/deploy/bin go install -tags remove_all_sd \
	  github.com/prometheus/prometheus/cmd/promtool@$(PROMTOOL_VERSION)
	@touch $@

$(HELM)-$(HELM_VERSION):
	@command -v go > /dev/null || { echo "error: go is not there; helm, which checks the chart, is \
	built with Go: https://go.dev/dl" >&2; exit 1; }
	GOBIN=$(CURDIR)/deploy/bin go install -ldflags "$(HELM_FLAGS)" helm.sh/helm/v3/cmd/helm@$(HELM_VERSION)
	@touch $@

$(KUBECONFORM)-$(KUBECONFORM_VERSION):
	@command -v go > /dev/null || { echo "error: go is not there; kubeconform, which checks what the chart \
	makes, is built with Go: https://go.dev/dl" >&2; exit 1; }
	GOBIN=$(CURDIR)/deploy/bin go install github.com/yannh/kubeconform/cmd/kubeconform@$(KUBECONFORM_VERSION)
	@touch $@

$(OPERATIONS_PYTHON)/.pyyaml-$(PYYAML_VERSION):
	@python3 -m pip --version > /dev/null || { echo "error: pip is not there; PyYAML, with which the checks \
	read manifests, is a package of PyPI: https://pip.pypa.io" >&2; exit 1; }
	python3 -m pip install --quiet --no-deps --upgrade --target $(OPERATIONS_PYTHON) PyYAML==$(PYYAML_VERSION)
	@touch $@

$(SCHEMAS_MADE): .ci/deploy_schemas.py | $(OPERATIONS_PYTHON)/.pyyaml-$(PYYAML_VERSION)
	python3 -B .ci/deploy_schemas.py --out $(SCHEMAS) --yaml $(OPERATIONS_PYTHON) \
	  --kubernetes-validate $(KUBERNETES_SCHEMAS_VERSION) $(addprefix --kubernetes ,$(KUBERNETES_VERSIONS)) \
	  $(addprefix --custom ,$(CUSTOM_RESOURCES))
	@touch $@

# The program whose metrics are compared with docs/metrics.md; its own if none is named.
OPERATIONS_PROGRAM ?=

operations-check: operations-tools nats-server ## Check what is in deploy/ against the tools and the program, and run what it describes
	python3 -B .ci/test_check_operations.py
	python3 -B .ci/test_check_deploy.py
	$(PROMTOOL) check config deploy/prometheus/prometheus.yaml
	$(PROMTOOL) check config --syntax-only deploy/compose/prometheus.yaml
	$(PROMTOOL) check rules --lint=all --lint-fatal deploy/prometheus/proofmill.rules.yaml
	$(PROMTOOL) test rules deploy/prometheus/proofmill.test.yaml
	@test -n "$(OPERATIONS_PROGRAM)" || $(CARGO) build --locked -p proofmill
	python3 -B .ci/check_operations.py --promtool $(PROMTOOL) --program $(TRIED_PROGRAM)
	python3 -B .ci/check_deploy.py --helm $(HELM) --kubeconform $(KUBECONFORM) --schemas $(SCHEMAS) \
	  --yaml $(OPERATIONS_PYTHON) --program $(TRIED_PROGRAM)
	python3 -B .ci/run_deployed.py --helm $(HELM) --yaml $(OPERATIONS_PYTHON) --program $(TRIED_PROGRAM)
	python3 -B .ci/test_dist.py --program $(TRIED_PROGRAM)

TRIED_PROGRAM = "$${OPERATIONS_PROGRAM:-$${CARGO_TARGET_DIR:-target}/debug/proofmill}"

# The program of a release; its own if none is named.
DIST_PROGRAM ?=
# Paths of this machine are not in the program.
DIST_FLAGS = --remap-path-prefix=$(CURDIR)=/proofmill --remap-path-prefix=$${CARGO_HOME:-$$HOME/.cargo}=/cargo

dist: ## Make a release in dist/: archive, chart, bill of materials, checksums
	@test -n "$(DIST_PROGRAM)" || \
	  RUSTFLAGS="$(DIST_FLAGS)" $(CARGO) build --release --locked -p proofmill --target-dir target/dist
	python3 -B .ci/dist.py --program "$${DIST_PROGRAM:-target/dist/release/proofmill}"

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

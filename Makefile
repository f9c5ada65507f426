# `make demo` needs Rust and a C compiler; `make test` needs Node.js 18 or newer as well, for circom
# and snarkjs, which tests run. Nothing is installed system-wide.

CARGO ?= cargo
PROOFMILL = $${CARGO_TARGET_DIR:-target}/release/proofmill
INTEROP = crates/cli/tests/circom

.PHONY: help demo build test interop-tools lint docs fmt bench clean

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: build ## Prove the first 32 headers of Bitcoin's main chain, verify and emit in order
	@$(PROOFMILL) demo

build: ## Build the program, optimised
	$(CARGO) build --release --locked -p proofmill

test: interop-tools ## Run every test
	$(CARGO) test --workspace --locked --no-fail-fast

interop-tools: $(INTEROP)/node_modules/.package-lock.json ## Install circom and snarkjs for the tests

$(INTEROP)/node_modules/.package-lock.json: $(INTEROP)/package.json $(INTEROP)/package-lock.json
	@command -v npm > /dev/null || { echo "error: npm is not there; circom and snarkjs, which the \
	tests run, need Node.js 18 or newer with npm: https://nodejs.org" >&2; exit 1; }
	cd $(INTEROP) && npm ci && touch node_modules/.package-lock.json

lint: ## Formatting and lints, warnings refused
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

docs: ## The API documentation, warnings refused
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked

fmt: ## Format the code
	$(CARGO) fmt --all

bench: ## Run the experiments of docs/benchmarks.md (takes a few minutes)
	$(CARGO) build --release --locked -p proofmill-bench
	@for experiment in latency scaling throughput multi-queue ordering hostile; do \
	  $${CARGO_TARGET_DIR:-target}/release/proofmill-bench $$experiment || exit 1; \
	done

clean: ## Remove what was built
	$(CARGO) clean

# `make demo` needs Rust; `make test` needs Rust as well. Nothing is installed system-wide.

CARGO ?= cargo
PROOFMILL = $${CARGO_TARGET_DIR:-target}/release/proofmill

.PHONY: help demo build test lint docs fmt bench clean

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: build ## Prove the first 32 headers of Bitcoin's main chain, verify and emit in order
	@$(PROOFMILL) demo

build: ## Build the program, optimised
	$(CARGO) build --release --locked -p proofmill

test: ## Run every test
	$(CARGO) test --workspace --locked --no-fail-fast

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

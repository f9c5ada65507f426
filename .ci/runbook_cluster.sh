# Sourced by the pages of docs/runbooks, through docs_check.py: a server of NATS, and a cluster on it.

# A server of NATS with these arguments. It chooses its port, since another program may have one that a page names, and
# writes it to nats-server_PID.ports.
start_bus() {
  background "nats-server --addr 127.0.0.1 --port -1 --ports_file_dir . $*" "Server is ready" bus.log
}

# A bus, and a coordinator that leads the page's workflow on it.
start_cluster() {
  start_bus --jetstream --store_dir bus
  export PROOFMILL_BUS
  # The server writes the file beside its start, perhaps after it is ready.
  for _ in $(seq 600); do
    PROOFMILL_BUS=$(sed -n 's/.*"nats":\["\([^"]*\)".*/\1/p' nats-server_*.ports 2>/dev/null) || true
    test -n "$PROOFMILL_BUS" && break
    sleep 0.1
  done
  background "proofmill coordinator workflow.toml" "ready" coordinator.log
  for _ in $(seq 600); do
    proofmill status | grep -q chain && return
    sleep 0.1
  done
  return 1
}

#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The guest's first process: a stock kernel and nvme-cli drive the device at 10.0.2.2, and print what they did. Lines that
# begin with "zkpu:" are for run.py. Parameters are in /data/parameters: PORT, NQN, COUNT, WINDOW, LEVELS, SCALARS_BYTES,
# TABLE_BYTES, HOST_PROGRAM (not empty: Proofmill runs in the guest as well, over /dev/nvme0n1).
export PATH=/bin LD_LIBRARY_PATH=/lib
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
. /data/parameters

say() { echo "zkpu: $*"; }
fail() { say "FAILED: $*"; dmesg | grep -i nvme | tail -n 20; poweroff -f; }
# Runs a command, shows it with its output, and ends the test if it fails.
step() {
  echo "+ $*"
  "$@" > /tmp/out 2>&1 || { cat /tmp/out; fail "$*"; }
  cat /tmp/out
}
# The same for a command that prints bytes, which go into a file.
step_bytes() {
  to=$1; shift; echo "+ $* > $to"
  "$@" > "$to" 2> /tmp/out || { cat /tmp/out; fail "$*"; }
}
expect() { grep -q "$1" /tmp/out || fail "expected: $1"; }
# The result that an io- or admin-passthru command printed, in hexadecimal digits.
result() { sed -n 's/.*result: *0x0*\([0-9a-f][0-9a-f]*\).*/\1/p' /tmp/out | head -n 1; }

step uname -sr
for module in virtio_pci virtio_net crc32c_generic nvme-tcp; do step modprobe $module; done
step ip link set lo up; step ip link set eth0 up; step ip addr add 10.0.2.15/24 dev eth0
say "kernel $(uname -r), $(nvme version | head -n 1)"

# --- discovery, connection, identification
host="--hostnqn=nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555 --hostid=11111111-2222-3333-4444-555555555555"
address="--transport=tcp --traddr=10.0.2.2 --trsvcid=$PORT"
step nvme discover $address $host; expect "subnqn: *$NQN"
# The target's clock goes on while a busy machine gives the guest no time: the host may be silent for long.
step nvme connect $address $host --nqn="$NQN" --keep-alive-tmo=1200
tries=0; while [ ! -b /dev/nvme0n1 ]; do
  tries=$((tries + 1)); [ $tries -lt 600 ] || fail "no /dev/nvme0n1"; sleep 0.1
done
step nvme id-ctrl /dev/nvme0; expect "^mn *: ZKPU"; expect "^nn *: 3"
step nvme id-ns /dev/nvme0n1; expect "lbads:9"
step nvme get-log /dev/nvme0 --log-id=0xc0 --log-len=512
say "connected to $(cat /sys/class/nvme/nvme0/model) over $(cat /sys/class/nvme/nvme0/transport), devices: $(ls /dev | grep '^n[vg]' | tr '\n' ' ')"

# --- the memory personality: blocks, Start, event, blocks
# Linux asks for events by itself only where OAES names a notice that it knows, and a ZKPU has none of those; an event
# request of ours completes with the event.
nvme admin-passthru /dev/nvme0 --opcode=0x0c --timeout=3600000 > /tmp/event 2>&1 &
# Writes a file of data from a block on, in commands of at most 128 KiB.
write_blocks() {
  offset=0; bytes=$3
  while [ $offset -lt $bytes ]; do
    part=$((bytes - offset)); [ $part -le 131072 ] || part=131072
    dd if="$1" of=/tmp/part bs=512 skip=$((offset / 512)) count=$((part / 512)) 2> /dev/null
    step nvme write /dev/nvme0n1 --start-block=$(($2 + offset / 512)) --block-count=$((part / 512 - 1)) --data-size=$part --data=/tmp/part
    offset=$((offset + part))
  done
}
zeros=/tmp/zeros; dd if=/dev/zero of=$zeros bs=512 count=1 2> /dev/null
write_blocks /data/scalars 0 $SCALARS_BYTES
write_blocks /data/table 2048 $TABLE_BYTES
write_blocks $zeros 12288 512
step nvme io-passthru /dev/nvme0n1 --opcode=0x80 --namespace-id=1 --cdw10=0 --cdw11=2048 --cdw12=12288 --cdw13=$COUNT \
  --cdw14=$((WINDOW | LEVELS << 8)) --cdw15=4711
job=$(result)
say "memory personality: job $job of $COUNT points is started"
tries=0; while ! grep -qi 'c10107' /tmp/event; do
  tries=$((tries + 1)); [ $tries -lt 3000 ] || { cat /tmp/event; fail "no event"; }; sleep 0.1
done
cat /tmp/event
say "memory personality: the event request has ended, $(sed -n 's/.*result: *//p' /tmp/event): jobs ended, log page C1h"
step_bytes /tmp/jobs nvme get-log /dev/nvme0 --log-id=0xc1 --log-len=1088 --raw-binary
say "jobs $(xxd -p -l 1088 /tmp/jobs | tr -d '\n')"
step nvme read /dev/nvme0n1 --start-block=12288 --block-count=0 --data-size=512 --data=/tmp/memory
say "result memory $(xxd -p -l 192 /tmp/memory | tr -d '\n')"

# --- the compute personality: memory by bytes, a range set, Execute Program
tries=0; while [ ! -c /dev/ng0n3 ] && [ $tries -lt 300 ]; do tries=$((tries + 1)); sleep 0.1; done
if [ -c /dev/ng0n3 ]; then
  write_bytes() {
    offset=0; bytes=$3
    while [ $offset -lt $bytes ]; do
      part=$((bytes - offset)); [ $part -le 131072 ] || part=131072
      dd if="$1" of=/tmp/part bs=512 skip=$((offset / 512)) count=$((part / 512)) 2> /dev/null
      step nvme io-passthru /dev/ng0n2 --opcode=5 --namespace-id=2 --cdw10=$(($2 + offset)) --cdw12=$part --data-len=$part \
        --input-file=/tmp/part --write
      offset=$((offset + part))
    done
  }
  write_bytes /data/scalars $((8 << 20)) $SCALARS_BYTES
  write_bytes /data/table $((9 << 20)) $TABLE_BYTES
  step nvme io-passthru /dev/ng0n2 --opcode=0 --namespace-id=2 --cdw10=$((14 << 20)) --cdw12=256
  step nvme admin-passthru /dev/nvme0 --opcode=0x89 --namespace-id=3 --cdw10=0 --cdw11=3 --data-len=96 \
    --input-file=/data/ranges --write
  set=$(result)
  say "compute personality: range set $set"
  step nvme io-passthru /dev/ng0n3 --opcode=1 --namespace-id=3 --cdw2=$((1 | 0x$set << 16)) --cdw10=$COUNT \
    --cdw11=$((WINDOW | LEVELS << 8)) --cdw12=4712 --timeout=300000
  say "compute personality: the program has ended, $(result)h cycles"
  step_bytes /tmp/compute nvme io-passthru /dev/ng0n2 --opcode=2 --namespace-id=2 --cdw10=$((14 << 20)) --cdw12=192 \
    --data-len=192 --read --raw-binary
  say "result compute $(xxd -p -l 192 /tmp/compute | tr -d '\n')"
else
  fail "no /dev/ng0n3: Linux makes no device of a namespace of another command set without log page 05h of that set"
fi

# --- refusals, and the way out
nvme io-passthru /dev/nvme0n1 --opcode=0x80 --namespace-id=1 --cdw13=0 --cdw14=$((WINDOW | LEVELS << 8)) > /tmp/out 2>&1 &&
  fail "a job of no points was taken"
cat /tmp/out; grep -qi '1c9' /tmp/out || fail "expected status 1c9h"
say "a job of no points is refused with status 1C9h"
if [ -n "$HOST_PROGRAM" ]; then
  step proofmill zkpu identify /dev/nvme0n1
  step proofmill zkpu bench /dev/nvme0n1 --log-n 10 --rounds 2
  say "the host program over /dev/nvme0n1: $(grep 'cycles of the core' /tmp/out)"
  step proofmill zkpu conform /dev/nvme0n1 --max-log-n 5
  say "conformance over /dev/nvme0n1: $(tail -n 1 /tmp/out)"
fi
step nvme disconnect --nqn="$NQN"
say "DONE"
poweroff -f

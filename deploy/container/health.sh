#!/bin/bash
# Health of the container. With PROOFMILL_HEALTH=PORT the page /healthz on that port must answer 200: that of an engine or a
# verifier (`--http`), of a mill, a coordinator, a sequencer or a source (`--metrics`). Otherwise the program must run:
# dispatchers and collectors serve no page; they end when they cannot go on.
set -u
if [ -z "${PROOFMILL_HEALTH:-}" ]; then
  for status in /proc/[0-9]*/status; do
    read -r _ name < "$status" 2> /dev/null || continue
    [ "$name" = proofmill ] && exit 0
  done
  echo "the program does not run"
  exit 1
fi
exec 3<> "/dev/tcp/127.0.0.1/$PROOFMILL_HEALTH" || exit 1
printf 'GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n' >&3
read -r -t 4 _ code _ <&3
echo "${code:-no answer}"
[ "${code:-}" = 200 ]

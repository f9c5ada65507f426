#!/bin/sh
# The two pictures of docs/engine.md, the frame printed and the waterfall written: an engine proves
# the witnesses of a folder, NAME.wtns for NAME.zkey, three times each, several at once.
#
#   docs/engine/pictures.sh FOLDER
set -eu
circuits=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
cd "$work"
: "${PROOFMILL:=proofmill}"
"$PROOFMILL" engine serve --circuits "$circuits" --budget "${BUDGET:-1GiB}" --workers 3 \
    > serve.log 2>&1 &
engine=$!
trap 'kill "$engine" 2> /dev/null || true; rm -rf "$work"' EXIT
until grep -q "the engine answers" serve.log; do
    kill -0 "$engine" || { cat serve.log >&2; exit 1; }
    sleep 0.1
done
proving=
for round in 1 2 3; do
    for witness in "$circuits"/*.wtns; do
        name=$(basename "$witness" .wtns)
        "$PROOFMILL" engine prove "$name" "$witness" -o "$name-$round.json" \
            --client pictures --request "$name-$round" > /dev/null &
        proving="$proving $!"
    done
done
# A frame while it works: when the first proof is there.
until ls ./*-1.json > /dev/null 2>&1; do sleep 0.05; done
"$PROOFMILL" engine top --once
for prover in $proving; do wait "$prover"; done
"$PROOFMILL" engine timeline --svg "$here/waterfall.svg"

#!/bin/sh
# Makes one proof of the thin proofs of a batch.
set -eu
input='' output=''
while [ $# -gt 0 ]; do
    case $1 in
        --input-path) input=$2; shift 2 ;;
        --output-path) output=$2; shift 2 ;;
        *) printf 'unknown argument: %s\n' "$1" >&2; exit 64 ;;
    esac
done

# Every number in the fields of a name, in order, on one line each.
fields() {
    sed 'y/{/\n/' "$input" | sed -n "s/.*\"$1\":[ ]*\([0-9][0-9]*\).*/\1/p"
}

# The checksum of a text: it stands where a real program would compute a proof.
checksum() {
    printf '%s' "$1" | cksum | sed 's/ .*//'
}

thin=$(fields thin)
first=$(fields first | sed -n 1p)
last=$(fields last | sed -n '$p')
printf '{"first": %s, "last": %s, "aggregated": %s}' \
    "$first" "$last" "$(checksum "$thin")" > "$output"

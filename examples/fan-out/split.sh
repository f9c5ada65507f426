#!/bin/sh
# Cuts a block into four parts: a JSON array, of which each element becomes a task.
set -eu
input='' output=''
while [ $# -gt 0 ]; do
    case $1 in
        --input-path) input=$2; shift 2 ;;
        --output-path) output=$2; shift 2 ;;
        *) printf 'unknown argument: %s\n' "$1" >&2; exit 64 ;;
    esac
done

# The number in a field of the input.
field() {
    sed -n "s/.*\"$1\":[ ]*\([0-9][0-9]*\).*/\1/p" "$input"
}

block=$(field block)
{
    printf '['
    for part in 0 1 2 3; do
        [ "$part" = 0 ] || printf ', '
        printf '{"group_id": "block-%s", "block": %s, "index": %s}' "$block" "$block" "$part"
    done
    printf ']'
} > "$output"

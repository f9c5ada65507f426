#!/bin/sh
# A stand-in for a prover, called as `prove.sh --input-path IN --output-path OUT`: the payload is its own proof.
cp "$2" "$4"

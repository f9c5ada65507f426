pragma circom 2.1.6;

include "circomlib/circuits/bitify.circom";
include "circomlib/circuits/sha256/sha256.circom";

// Shows knowledge of bytes whose SHA-256 is the public digest.
template Digest(length) {
    signal input bytes[length];
    signal output digest[32];

    component bits[length];
    component hash = Sha256(8 * length);
    for (var i = 0; i < length; i++) {
        bits[i] = Num2Bits(8);
        bits[i].in <== bytes[i];
        for (var j = 0; j < 8; j++) {
            // SHA-256 reads each byte from its highest bit.
            hash.in[8 * i + j] <== bits[i].out[7 - j];
        }
    }
    component packed[32];
    for (var i = 0; i < 32; i++) {
        packed[i] = Bits2Num(8);
        for (var j = 0; j < 8; j++) {
            packed[i].in[j] <== hash.out[8 * i + 7 - j];
        }
        digest[i] <== packed[i].out;
    }
}

pragma circom 2.1.6;

include "digest.circom";

component main = Digest(64);

pragma circom 2.1.6;

include "digest.circom";

// Four compressions: the circuit that proving times are compared on.
component main = Digest(200);

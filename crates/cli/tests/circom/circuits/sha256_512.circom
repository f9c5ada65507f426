pragma circom 2.1.6;

include "digest.circom";

// Nine compressions, above 2¹⁸ constraints: the circuit that the resident engine is measured with.
component main = Digest(512);

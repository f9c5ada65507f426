pragma circom 2.1.6;

include "circomlib/circuits/eddsaposeidon.circom";

// Shows that a public key signed a public message (EdDSA on Baby Jubjub, hashed with Poseidon).
component main { public [enabled, Ax, Ay, M] } = EdDSAPoseidonVerifier();

pragma circom 2.1.6;

include "circomlib/circuits/poseidon.circom";

// Shows that a leaf lies in the tree of a public root: each node is Poseidon of its two children.
template MerkleProof(depth) {
    signal input leaf;
    signal input siblings[depth];
    // 1 where the node is the right child.
    signal input right[depth];
    signal output root;

    signal nodes[depth + 1];
    signal swapped[depth];
    component hashes[depth];
    nodes[0] <== leaf;
    for (var i = 0; i < depth; i++) {
        right[i] * (1 - right[i]) === 0;
        swapped[i] <== right[i] * (siblings[i] - nodes[i]);
        hashes[i] = Poseidon(2);
        hashes[i].inputs[0] <== nodes[i] + swapped[i];
        hashes[i].inputs[1] <== siblings[i] - swapped[i];
        nodes[i + 1] <== hashes[i].out;
    }
    root <== nodes[depth];
}

component main = MerkleProof(8);

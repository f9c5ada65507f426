pragma circom 2.1.6;

// A product of four secret factors, none of which is 1: a circuit for any curve.
template Product() {
    signal input factors[4];
    signal output product;

    signal inverses[4];
    signal partial[3];
    for (var i = 0; i < 4; i++) {
        inverses[i] <-- 1 / (factors[i] - 1);
        (factors[i] - 1) * inverses[i] === 1;
    }
    partial[0] <== factors[0] * factors[1];
    partial[1] <== partial[0] * factors[2];
    product <== partial[1] * factors[3];
}

component main = Product();

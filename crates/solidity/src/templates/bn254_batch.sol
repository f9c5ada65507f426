
    /// @dev Prefix of what the weights are hashed from: keccak256 of "{{DOMAIN_TAG}}" and of the key's digest above.
    bytes32 private constant DOMAIN = {{DOMAIN}};

    /// @notice Whether all of `proofs` are valid, each for its part of `inputs`. An empty batch is not valid.
    /// @dev The equations of all proofs are multiplied, each raised to a random weight:
    ///
    ///     e(w[0] * A[0], B[0]) * e(w[1] * A[1], B[1]) * ...
    ///         * e(sum of w[i] * C[i], -delta) * e(sum of w[i] * L[i], -gamma) * e(sum of w[i] * alpha, -beta) = 1
    ///
    /// w[0] is 1, the others are 128 bits of keccak256(seed, i), where seed = keccak256(DOMAIN, proofs, inputs). For one
    /// batch with an invalid proof the product is 1 with probability 2^-128, over the hash as a random oracle: if
    /// proof j > 0 is invalid, at most one value of w[j] makes it 1, whatever the other weights are; if only proof 0
    /// is invalid, none does. Who tries q batches until one passes succeeds with probability at most q * 2^-128. The
    /// weights depend on nothing but the batch: the answer for a batch is the same on every chain and in every block.
    ///
    /// `NotEnoughGas` and the gas that a false batch takes are as for `verifyProof`.
    /// @param proofs The words of each proof in the order of `verifyProof`: a, b, c
    /// @param inputs The public inputs of each proof
    /// @return valid Whether all proofs are valid
    function verifyProofs(uint256[8][] calldata proofs, uint256[INPUTS][] calldata inputs)
        public
        view
        returns (bool valid)
    {
        uint256 count = proofs.length;
        if (count == 0 || inputs.length != count) return false;

        // Offsets into `pairs`: 0x00 its length, then from 0x20 on A[i], B[i] for each proof (0xc0 bytes), then C,
        // -delta, L, -gamma, alpha, -beta as in `verifyProof`.
        bytes memory pairs = bytes.concat(new bytes((count - 1) * 0xc0), PAIRS);
        // Scalars of IC[0], IC[1], ...: sum of w[i], sum of w[i] * inputs[i][0], ...
        uint256[INPUTS + 1] memory scalars;
        uint256 gasNeeded = count * (34_000 + 12_150) + (INPUTS + 2) * 6_150 + 45_000 + 3 * 34_000;
        gasNeeded = (gasNeeded * 64) / 63 + 5_000 * (count + 1) + 1_000 * INPUTS * (count + 1);

        // A precompile that refuses its input leaves little gas: nothing more is called then.
        bool answered = true;
        uint256 gasBefore = gasleft();
        {
            // Words: sum of w[i] * C[i] (2), w[i] * C[i] (2), w[i]. ECMUL reads the last three, ECADD the first four.
            uint256[5] memory sum;
            bytes32 seed = _seed(proofs, inputs);
            for (uint256 i = 0; i < count && answered; ++i) {
                uint256 weight = i == 0 ? 1 : uint128(uint256(keccak256(abi.encodePacked(seed, i))));
                if (!_addInputs(scalars, weight, inputs[i])) return false;
                assembly ("memory-safe") {
                    let from := add(proofs.offset, mul(i, 0x100))
                    let pair := add(add(pairs, 0x20), mul(i, 0xc0))
                    calldatacopy(pair, from, 0x40)
                    switch i
                    case 0 { calldatacopy(sum, add(from, 0xc0), 0x40) }
                    default {
                        let product := add(sum, 0x40)
                        calldatacopy(product, add(from, 0xc0), 0x40)
                        mstore(add(sum, 0x80), weight)
                        answered := staticcall(gas(), ECMUL, product, 0x60, product, 0x40)
                        if answered { answered := staticcall(gas(), ECADD, sum, 0x80, sum, 0x40) }

                        // w[i] * A[i] in the place of A[i]: the weight is put behind A[i] for the product only, then
                        // B[i] takes its place.
                        mstore(add(pair, 0x40), weight)
                        if answered { answered := staticcall(gas(), ECMUL, pair, 0x60, pair, 0x40) }
                    }
                    calldatacopy(add(pair, 0x40), add(from, 0x40), 0x80)
                }
            }
            assembly ("memory-safe") {
                // C, the first of the words behind the pairs of the proofs.
                let tail := add(add(pairs, 0x20), mul(count, 0xc0))
                mstore(tail, mload(sum))
                mstore(add(tail, 0x20), mload(add(sum, 0x20)))
            }
        }

        // Offsets into `terms` as in `verifyProof`; the scalar of IC[0] is needed here.
        bytes memory terms = INSTANCE;
        if (answered) assembly ("memory-safe") {
            let tail := add(add(pairs, 0x20), mul(count, 0xc0))

            // L is added up in the place of IC[0], as in `verifyProof`.
            let sum := add(terms, 0x20)
            let product := add(terms, 0x60)
            mstore(product, mload(scalars))
            answered := and(answered, staticcall(gas(), ECMUL, sum, 0x60, sum, 0x40))
            for { let i := 1 } iszero(gt(i, INPUTS)) { i := add(i, 1) } {
                let term := add(sum, mul(i, 0x60))
                mstore(add(term, 0x40), mload(add(scalars, mul(i, 0x20))))
                answered := and(answered, staticcall(gas(), ECMUL, term, 0x60, product, 0x40))
                answered := and(answered, staticcall(gas(), ECADD, sum, 0x80, sum, 0x40))
            }
            mstore(add(tail, 0xc0), mload(sum))
            mstore(add(tail, 0xe0), mload(add(sum, 0x20)))

            // sum of w[i] * alpha in the place of alpha: the scalar takes the place of the first word of -beta while
            // the product is computed.
            let alpha := add(tail, 0x180)
            let scalar := add(tail, 0x1c0)
            let word := mload(scalar)
            mstore(scalar, mload(scalars))
            answered := and(answered, staticcall(gas(), ECMUL, alpha, 0x60, alpha, 0x40))
            mstore(scalar, word)

            // So far no precompile here can refuse its input. The answer of this one is checked as in `verifyProof`.
            mstore(0x00, 0)
            answered := and(answered, staticcall(gas(), ECPAIRING, add(pairs, 0x20), mload(pairs), 0x00, 0x20))
            answered := and(answered, eq(returndatasize(), 0x20))
            valid := and(answered, eq(mload(0x00), 1))
        }
        if (!answered && gasBefore < gasNeeded) revert NotEnoughGas();
    }

    /// @dev keccak256 of DOMAIN, the words of the proofs and those of the inputs. Their number follows from the length.
    function _seed(uint256[8][] calldata proofs, uint256[INPUTS][] calldata inputs) private pure returns (bytes32 seed) {
        assembly ("memory-safe") {
            // Beyond the end of allocated memory, for this hash only.
            let buffer := mload(0x40)
            let proofBytes := mul(proofs.length, 0x100)
            let inputBytes := mul(inputs.length, INPUT_BYTES)
            mstore(buffer, DOMAIN)
            calldatacopy(add(buffer, 0x20), proofs.offset, proofBytes)
            calldatacopy(add(add(buffer, 0x20), proofBytes), inputs.offset, inputBytes)
            seed := keccak256(buffer, add(0x20, add(proofBytes, inputBytes)))
        }
    }

    /// @dev Adds `weight` times 1, inputs[0], inputs[1], ... to `scalars`, modulo R.
    /// @return canonical Whether the inputs are below R
    function _addInputs(uint256[INPUTS + 1] memory scalars, uint256 weight, uint256[INPUTS] calldata inputs)
        private
        pure
        returns (bool canonical)
    {
        scalars[0] = addmod(scalars[0], weight, R);
        for (uint256 j = 0; j < INPUTS; ++j) {
            uint256 value = inputs[j];
            if (value >= R) return false;
            scalars[j + 1] = addmod(scalars[j + 1], mulmod(weight, value, R), R);
        }
        return true;
    }

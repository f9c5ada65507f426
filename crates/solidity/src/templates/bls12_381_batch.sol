
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
    /// @param proofs The proofs, 512 bytes each, one after the other
    /// @param inputs The public inputs of the first proof, then those of the second, and so on
    /// @return valid Whether all proofs are valid
    function verifyProofs(bytes calldata proofs, uint256[] calldata inputs) public view returns (bool valid) {
        uint256 count = proofs.length / PROOF_BYTES;
        if (count == 0 || proofs.length != count * PROOF_BYTES || inputs.length != count * INPUTS) return false;

        // Offsets into `pairs`: 0x00 its length, then from 0x20 on A[i], B[i] for each proof (0x180 bytes), then C,
        // -delta, L, -gamma, alpha, -beta as in `verifyProof`.
        bytes memory pairs = bytes.concat(new bytes((count - 1) * 0x180), PAIRS);
        // From 0x20 on C[i], w[i] for each proof (0xa0 bytes): pairs of G1MSM.
        bytes memory products = new bytes(count * 0xa0);
        // Scalars of IC[0], IC[1], ...: sum of w[i], sum of w[i] * inputs[i][0], ...
        uint256[INPUTS + 1] memory scalars;
        // Prices of the precompiles, those of G1MSM without its discount; and for what is between them: the sums of inputs,
        // about 140 for each, with their hash and memory.
        uint256 gasNeeded = count * (32_600 + 2 * 12_000) + (INPUTS + 2) * 12_000 + 37_700 + 3 * 32_600;
        gasNeeded = (gasNeeded * 64) / 63 + 5_000 * (count + 1) + 500 * INPUTS * (count + 1);

        // A precompile that refuses its input leaves little gas: nothing more is called then.
        bool answered = true;
        uint256 gasBefore = gasleft();
        {
            bytes32 seed = keccak256(abi.encodePacked(DOMAIN, proofs, inputs));
            for (uint256 i = 0; i < count && answered; ++i) {
                uint256 weight = i == 0 ? 1 : uint128(uint256(keccak256(abi.encodePacked(seed, i))));
                if (!_addInputs(scalars, weight, inputs[i * INPUTS:(i + 1) * INPUTS])) return false;
                assembly ("memory-safe") {
                    let from := add(proofs.offset, mul(i, PROOF_BYTES))
                    let term := add(add(products, 0x20), mul(i, 0xa0))
                    calldatacopy(term, add(from, 0x180), 0x80)
                    mstore(add(term, 0x80), weight)

                    // w[i] * A[i] in the place of A[i]: the weight is put behind A[i] for the product only, then B[i]
                    // takes its place.
                    let pair := add(add(pairs, 0x20), mul(i, 0x180))
                    calldatacopy(pair, from, 0x80)
                    if i {
                        mstore(add(pair, 0x80), weight)
                        answered := staticcall(gas(), G1MSM, pair, 0xa0, pair, 0x80)
                    }
                    calldatacopy(add(pair, 0x80), add(from, 0x80), 0x100)
                }
            }
        }

        bytes memory terms = INSTANCE;
        assembly ("memory-safe") {
            // The pairs behind those of the proofs, from C on.
            let tail := add(add(pairs, 0x20), mul(count, 0x180))
            if answered {
                answered := staticcall(gas(), G1MSM, add(products, 0x20), mload(products), tail, 0x80)
            }
            if answered {
                // L: the scalars go behind their points.
                for { let i := 0 } iszero(gt(i, INPUTS)) { i := add(i, 1) } {
                    mstore(add(add(terms, 0xa0), mul(i, 0xa0)), mload(add(scalars, mul(i, 0x20))))
                }
                answered := staticcall(gas(), G1MSM, add(terms, 0x20), mload(terms), add(tail, 0x180), 0x80)
            }
            if answered {
                // sum of w[i] * alpha in the place of alpha: the scalar takes the place of the first word of -beta
                // while the product is computed.
                let alpha := add(tail, 0x300)
                let scalar := add(alpha, 0x80)
                let word := mload(scalar)
                mstore(scalar, mload(scalars))
                answered := staticcall(gas(), G1MSM, alpha, 0xa0, alpha, 0x80)
                mstore(scalar, word)
            }
            if answered {
                mstore(0x00, 0)
                answered := staticcall(gas(), PAIRING_CHECK, add(pairs, 0x20), mload(pairs), 0x00, 0x20)
                answered := and(answered, eq(returndatasize(), 0x20))
                valid := and(answered, eq(mload(0x00), 1))
            }
        }
        if (!answered && gasBefore < gasNeeded) revert NotEnoughGas();
    }

    /// @dev Adds `weight` times 1, inputs[0], inputs[1], ... to `scalars`, modulo R.
    /// @return canonical Whether the inputs are below R
    function _addInputs(uint256[INPUTS + 1] memory scalars, uint256 weight, uint256[] calldata inputs)
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

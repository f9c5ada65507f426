// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.30;

import {IGroth16Verifier} from "./IGroth16Verifier.sol";

/// @title Proofs of one key that are gathered to be verified in one call
/// @notice A batch of n proofs takes n + 3 pairings instead of 4 * n. It says only whether all of them are valid.
library ProofBatch {
    /// @notice Proofs so far, one after the other, and their public inputs in the same order.
    /// @param count How many there are.
    /// @param proofs Bytes for as many proofs as there is room for, of which the first `count` are in use.
    /// @param inputs Words for as many proofs' public inputs as there is room for.
    /// @param inputsEach Public inputs of each proof.
    struct Gathered {
        uint256 count;
        bytes proofs;
        uint256[] inputs;
        uint256 inputsEach;
    }

    /// @dev Bytes of an encoded proof.
    uint256 private constant PROOF_BYTES = 512;

    /// @dev Whether there is a verifier at the address that has both functions: it refuses an empty batch, while a contract without the
    /// function reverts.
    function isVerifier(IGroth16Verifier verifier) internal view returns (bool) {
        if (address(verifier).code.length == 0) return false;
        try verifier.verifyProofs("", new uint256[](0)) returns (bool valid) {
            return !valid;
        } catch {
            return false;
        }
    }

    /// @dev An empty batch with room for `room` proofs with `inputsEach` public inputs each.
    function withRoom(uint256 room, uint256 inputsEach) internal pure returns (Gathered memory batch) {
        batch.proofs = new bytes(room * PROOF_BYTES);
        batch.inputs = new uint256[](room * inputsEach);
        batch.inputsEach = inputsEach;
    }

    /// @dev Adds a proof. The caller sees to it that there is room, and writes its public inputs, all of them, into the batch's.
    /// @return taken False if the proof has not the length of one; the batch is unchanged then.
    /// @return start Index of the proof's first public input among the batch's.
    function add(Gathered memory batch, bytes calldata proof) internal pure returns (bool taken, uint256 start) {
        if (proof.length != PROOF_BYTES) return (false, 0);
        uint256 index = batch.count;
        bytes memory proofs = batch.proofs;
        assert((index + 1) * PROOF_BYTES <= proofs.length);
        // Solidity copies bytes only into new memory. This is within `proofs`, by the line above.
        assembly ("memory-safe") {
            calldatacopy(add(add(proofs, 0x20), mul(index, PROOF_BYTES)), proof.offset, PROOF_BYTES)
        }
        batch.count = index + 1;
        return (true, index * batch.inputsEach);
    }

    /// @dev Whether all proofs of the batch, of which there must be one, are valid. The batch cannot be added to any more.
    function verify(Gathered memory batch, IGroth16Verifier verifier) internal view returns (bool) {
        bytes memory proofs = batch.proofs;
        uint256[] memory inputs = batch.inputs;
        uint256 proofBytes = batch.count * PROOF_BYTES;
        uint256 inputCount = batch.count * batch.inputsEach;
        // Both arrays are cut to what is in use: never longer than they were made.
        assembly ("memory-safe") {
            mstore(proofs, proofBytes)
            mstore(inputs, inputCount)
        }
        // A batch of one would cost more than a proof alone.
        return batch.count == 1 ? verifier.verifyProof(proofs, inputs) : verifier.verifyProofs(proofs, inputs);
    }
}

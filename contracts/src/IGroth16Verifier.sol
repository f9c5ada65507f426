// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.30;

/// @title A verifier of Groth16 proofs over BLS12-381, for one verifying key
/// @notice `proofmill zkey export-solidity --batch` writes such a contract. It uses the precompiles of EIP-2537.
interface IGroth16Verifier {
    /// @notice Verifies a proof.
    /// @param proof A (128 bytes), B (256) and C (128), in the encoding of EIP-2537: each element of the base field takes
    /// 64 bytes, big-endian, of which the first 16 are zero; an element of the quadratic extension is c0, then c1.
    /// @param inputs Public inputs in the key's order, without the leading one. Each must be below the order of the
    /// scalar field, and their number must be the key's.
    /// @return True if the proof is valid for these inputs. Anything else is false or a revert.
    function verifyProof(bytes calldata proof, uint256[] calldata inputs) external view returns (bool);

    /// @notice Verifies several proofs at once, for less gas than one by one.
    /// @param proofs The proofs, encoded as above, one after the other.
    /// @param inputs The public inputs of the first proof, then those of the second, and so on.
    /// @return True if all are valid, each for its inputs, but with a probability of 2^-128. Anything else is false or a revert.
    function verifyProofs(bytes calldata proofs, uint256[] calldata inputs) external view returns (bool);
}

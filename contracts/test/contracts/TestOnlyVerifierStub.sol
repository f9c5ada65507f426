// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.30;

/// @title A stand-in for a verifier, for tests only: it verifies nothing
/// @notice For what no real proof can be made for in a test: chains of headers whose bits differ, which would have to be mined.
contract TestOnlyVerifierStub {
    /// @notice Calls any proof valid whose first byte is one.
    function verifyProof(bytes calldata proof, uint256[] calldata) external pure returns (bool) {
        return proof.length != 0 && proof[0] == 0x01;
    }

    /// @notice Calls proofs valid of which each has a first byte that is one.
    function verifyProofs(bytes calldata proofs, uint256[] calldata) external pure returns (bool) {
        for (uint256 from = 0; from < proofs.length; from += 512) {
            if (proofs[from] != 0x01) return false;
        }
        return proofs.length != 0 && proofs.length % 512 == 0;
    }
}

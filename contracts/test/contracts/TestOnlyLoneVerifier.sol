// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.30;

/// @title A contract with the first of a verifier's two functions, for tests only
contract TestOnlyLoneVerifier {
    /// @notice Calls no proof valid.
    function verifyProof(bytes calldata, uint256[] calldata) external pure returns (bool) {
        return false;
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.30;

import {BitcoinDifficulty} from "../../src/BitcoinDifficulty.sol";

/// @title The functions of BitcoinDifficulty for many values at once, for tests only
contract DifficultyHarness {
    /// @notice `BitcoinDifficulty.target` and `BitcoinDifficulty.work` of each; zeros where they revert.
    function decode(uint32[] calldata bits) external view returns (uint256[] memory targets, uint256[] memory works) {
        targets = new uint256[](bits.length);
        works = new uint256[](bits.length);
        for (uint256 index = 0; index < bits.length; ++index) {
            try this.decodeOne(bits[index]) returns (uint256 target, uint256 work) {
                (targets[index], works[index]) = (target, work);
            } catch (bytes memory reason) {
                require(keccak256(reason) == keccak256(abi.encodeWithSelector(BitcoinDifficulty.InvalidBits.selector, bits[index])));
            }
        }
    }

    /// @notice `BitcoinDifficulty.target` and `BitcoinDifficulty.work`.
    function decodeOne(uint32 bits) external pure returns (uint256 target, uint256 work) {
        return (BitcoinDifficulty.target(bits), BitcoinDifficulty.work(bits));
    }

    /// @notice `BitcoinDifficulty.compact` of each.
    function encode(uint256[] calldata targets) external pure returns (uint32[] memory bits) {
        bits = new uint32[](targets.length);
        for (uint256 index = 0; index < targets.length; ++index) {
            bits[index] = BitcoinDifficulty.compact(targets[index]);
        }
    }

    /// @notice `BitcoinDifficulty.retarget` of each.
    function retarget(uint32[] calldata bits, uint32[] calldata first, uint32[] calldata last)
        external
        pure
        returns (uint32[] memory next)
    {
        next = new uint32[](bits.length);
        for (uint256 index = 0; index < bits.length; ++index) {
            next[index] = BitcoinDifficulty.retarget(bits[index], first[index], last[index]);
        }
    }
}

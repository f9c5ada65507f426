// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.30;

/// @title The difficulty rule of Bitcoin's main network
/// @notice Targets, their compact form, the work that they stand for, and the change after every 2016 headers, as Bitcoin
/// Core computes them (`arith_uint256::SetCompact`, `GetCompact`, `GetBlockProof`, `CalculateNextWorkRequired`).
library BitcoinDifficulty {
    /// @notice Number of headers between two changes of the difficulty.
    uint32 internal constant PERIOD = 2016;

    /// @notice Seconds that a period is meant to take: two weeks.
    uint256 internal constant TIMESPAN = 14 days;

    /// @notice Compact form of the easiest target.
    uint32 internal constant POW_LIMIT_BITS = 0x1d00ffff;

    /// @notice The easiest target.
    uint256 internal constant POW_LIMIT = 0xffff << 208;

    /// @notice Bits that encode no target: zero, negative, or beyond 256 bits.
    /// @param bits The bits.
    error InvalidBits(uint32 bits);

    /// @notice Decodes the compact form of a target: one byte of exponent, one sign bit and 23 bits of mantissa.
    /// @param bits The compact form, a header's `bits`.
    /// @return decoded The target; never zero, never 2**256 - 1. Reverts with `InvalidBits` where there is none.
    function target(uint32 bits) internal pure returns (uint256 decoded) {
        uint256 exponent = bits >> 24;
        uint256 mantissa = bits & 0x007fffff;
        if (exponent <= 3) {
            decoded = mantissa >> (8 * (3 - exponent));
        } else {
            uint256 shift = 8 * (exponent - 3);
            decoded = mantissa << shift;
            if (decoded >> shift != mantissa) revert InvalidBits(bits);
        }
        if (decoded == 0 || bits & 0x00800000 != 0) revert InvalidBits(bits);
    }

    /// @notice Encodes a target in compact form, rounded down to the 15 to 23 bits that the form keeps.
    /// @param value The target.
    /// @return bits Its compact form; zero for zero.
    function compact(uint256 value) internal pure returns (uint32 bits) {
        uint256 size = 0;
        for (uint256 rest = value; rest != 0; rest >>= 8) ++size;
        uint256 mantissa = size <= 3 ? value << (8 * (3 - size)) : value >> (8 * (size - 3));
        // A set 24th bit would be read as a sign.
        if (mantissa & 0x00800000 != 0) {
            mantissa >>= 8;
            ++size;
        }
        // The mantissa has 23 bits and the size is at most 33, so nothing is cut off.
        bits = uint32((size << 24) | mantissa);
    }

    /// @notice Expected number of hashes to find a header with these bits: floor(2**256 / (target + 1)).
    /// @param bits The header's bits.
    /// @return hashes The number of hashes. Reverts with `InvalidBits` if the bits encode no target.
    function work(uint32 bits) internal pure returns (uint256 hashes) {
        uint256 decoded = target(bits);
        // 2**256 / (t + 1) is (2**256 - 1 - t) / (t + 1) + 1, which needs no more than 256 bits.
        hashes = ~decoded / (decoded + 1) + 1;
    }

    /// @notice The bits that the network demands of the first header after a period.
    /// @param bits Bits of the period's headers. Their target must not be above `POW_LIMIT`.
    /// @param first Time of the period's first header, seconds since 1970.
    /// @param last Time of the period's last header. It may be before `first`.
    /// @return next The bits after the period.
    function retarget(uint32 bits, uint32 first, uint32 last) internal pure returns (uint32 next) {
        uint256 took = last > first ? last - first : 0;
        if (took < TIMESPAN / 4) took = TIMESPAN / 4;
        if (took > TIMESPAN * 4) took = TIMESPAN * 4;
        // The limit is below 2**224 and four periods below 2**23 seconds: the product has less than 256 bits.
        uint256 scaled = target(bits) * took / TIMESPAN;
        next = compact(scaled > POW_LIMIT ? POW_LIMIT : scaled);
    }
}

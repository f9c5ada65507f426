// SPDX-License-Identifier: MIT OR Apache-2.0
// Constants of BLS12-377 G1 for the oracle. Made by scripts/constants.py; do not edit.
#pragma once
#include <cstdint>
namespace constants {
constexpr uint64_t P[6] = {0x8508c00000000001ull, 0x170b5d4430000000ull, 0x1ef3622fba094800ull, 0x1a22d9f300f5138full, 0xc63b05c06ca1493bull, 0x01ae3a4617c510eaull};
constexpr uint64_t ONE[6] = {0x02cdffffffffff68ull, 0x51409f837fffffb1ull, 0x9f7db3a98a7d3ff2ull, 0x7b4e97b76e7c6305ull, 0x4cf495bf803c84e8ull, 0x008d6661e2fdf49aull};
constexpr uint64_t R_SQUARED[6] = {0xb786686c9400cd22ull, 0x0329fcaab00431b1ull, 0x22a5f11162d6b46dull, 0xbfdf7d03827dc3acull, 0x837e92f041790bf9ull, 0x006dfccb1e914b88ull};
constexpr uint64_t D_MONT[6] = {0x7925bf4222538363ull, 0xf57011bac07d547dull, 0x07a6be793f79c7d2ull, 0x2acb84bee2f95d93ull, 0x45fb60ee86cad49full, 0x00bc23017dffb145ull};
constexpr uint64_t K_MONT[6] = {0xf24b7e8444a706c6ull, 0xeae0237580faa8faull, 0x0f4d7cf27ef38fa5ull, 0x5597097dc5f2bb26ull, 0x8bf6c1dd0d95a93eull, 0x01784602fbff628aull};
constexpr uint64_t GENERATOR_X_MONT[6] = {0x5bab21b3654b417full, 0x042fff8a1d3e1fe0ull, 0xb702072edf39dc37ull, 0xa5625e7839426b02ull, 0xbf2dc368b51c7d03ull, 0x00b3ad9028ac3263ull};
constexpr uint64_t GENERATOR_Y_MONT[6] = {0x3904973cef15101dull, 0xb45ed211b1f14456ull, 0x90a86b865dfac94eull, 0xcdb19c57fe3945cdull, 0x972a8d46ef4f7097ull, 0x00281a91a3d9cf77ull};
constexpr uint64_t R_ORDER[4] = {0x0a11800000000001ull, 0x59aa76fed0000001ull, 0x60b44d1e5c37b001ull, 0x12ab655e9a2ca556ull};
constexpr uint64_t NEG_INV_P_64 = 0x8508bfffffffffffull;
constexpr uint64_t KNOWN_SCALAR[4] = {0xdcf4bb99f4bea973ull, 0xd95bafc8f2a4d27bull, 0x177219d30e7a269full, 0x0b8dc86615ba2bddull};
constexpr uint64_t KNOWN_X_MONT[6] = {0x3fb6af846b4b8c48ull, 0xde8374b9ef10d124ull, 0xae9132c9b6f85f10ull, 0x215c3b2dce71d080ull, 0x636c9d6ff13d7eceull, 0x0036af4ad30ac4b2ull};
constexpr uint64_t KNOWN_Y_MONT[6] = {0x6a5780aade2989daull, 0xcadd9964d2914c58ull, 0x49e7a9524f566fa2ull, 0x63defb631367a20full, 0x8aeb7d296bca5cb9ull, 0x000a7a56232dc490ull};
constexpr uint64_t KNOWN_A[6] = {0x2b491044d5e34124ull, 0xcf1822ffbc688778ull, 0xda94e3e8ab73738full, 0x4067c3584ee207f8ull, 0x3653f8dd9b1f282eull, 0x00124bc89b575bd1ull};
constexpr uint64_t KNOWN_B[6] = {0xae66267594c9c950ull, 0xffed9235288bc781ull, 0xa372db8f6e405d93ull, 0xcdbd47d364be8049ull, 0xdc38f519b91751daull, 0x0104a47dfeac7eb7ull};
constexpr uint64_t KNOWN_AB[6] = {0xb3f8bbacf1e39a00ull, 0x5b21aab321a70e9aull, 0xd1fa5990ab9f120full, 0x5c80f0a39883d5b0ull, 0x6c40d8be8aaa9a25ull, 0x0171279728714b05ull};
}  // namespace constants

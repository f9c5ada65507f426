// Additions, subtractions and multiply-adds of 32 bits whose carry goes on to the next.
#pragma once
#include "platform.cuh"

namespace proofmill {

// The upper half of a·b.
DEVICE u32 high_half(u32 a, u32 b) { return static_cast<u32>(u64{a} * b >> 32); }

// A chain of operations. Each one whose name ends in `c` takes the carry (or borrow) that the one
// before it left; every one leaves its own. On a card the carry is the processor's flag, so nothing
// but the chain's next operation may stand between two that belong together.
struct Chain {
#if defined(__CUDA_ARCH__)
#define CHAIN_2(name, instruction)                                                     \
  DEVICE u32 name(u32 a, u32 b) {                                                      \
    u32 r;                                                                             \
    asm volatile(instruction " %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));               \
    return r;                                                                          \
  }
#define CHAIN_3(name, instruction)                                                     \
  DEVICE u32 name(u32 a, u32 b, u32 c) {                                               \
    u32 r;                                                                             \
    asm volatile(instruction " %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));   \
    return r;                                                                          \
  }
  CHAIN_2(add, "add.cc.u32")
  CHAIN_2(addc, "addc.cc.u32")
  CHAIN_2(sub, "sub.cc.u32")
  CHAIN_2(subc, "subc.cc.u32")
  CHAIN_3(mad_lo, "mad.lo.cc.u32")
  CHAIN_3(madc_lo, "madc.lo.cc.u32")
  CHAIN_3(madc_hi, "madc.hi.cc.u32")
#undef CHAIN_2
#undef CHAIN_3

#else
  u32 carry = 0;

  // Of a difference below zero the upper half is all ones: a borrow of one.
  u32 leave(u64 result) {
    carry = static_cast<u32>(result >> 32) & 1;
    return static_cast<u32>(result);
  }
  u32 add(u32 a, u32 b) { return leave(u64{a} + b); }
  u32 addc(u32 a, u32 b) { return leave(u64{a} + b + carry); }
  u32 sub(u32 a, u32 b) { return leave(u64{a} - b); }
  u32 subc(u32 a, u32 b) { return leave(u64{a} - b - carry); }
  u32 mad_lo(u32 a, u32 b, u32 c) { return leave(u64{a * b} + c); }
  u32 madc_lo(u32 a, u32 b, u32 c) { return leave(u64{a * b} + c + carry); }
  u32 madc_hi(u32 a, u32 b, u32 c) { return leave((u64{a} * b >> 32) + c + carry); }
#endif
};

}  // namespace proofmill

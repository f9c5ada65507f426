// Scalars as signed digits: pairs of (bucket, point), which the sort brings together by bucket.
#pragma once
#include "field.cuh"

namespace proofmill {

// A scalar is Σ dᵢ·2^(c·i) with −2^(c−1) < dᵢ ≤ 2^(c−1). Window i takes its points from copy
// i / shared of the bases, which holds their multiples by 2^(c·shared·copy), and so falls into the
// buckets of window i mod shared. A window has 2^(c−1) buckets, for the digits' absolute values.
template <class Scalar>
struct Recode {
  static constexpr u32 THREADS = 256;

  struct Args {
    // In Montgomery form.
    const Scalar* scalars;
    // By window, then by scalar.
    u32* keys;
    // The point's number, and in the lowest bit whether it is subtracted.
    u32* values;
    u32 count;
    u32 window_bits;
    u32 windows;
    u32 shared_windows;
    // Which base the first scalar belongs to, and how many one copy has.
    u32 first_base;
    u32 bases;
  };
  using Shared = Nothing;
  using Own = Nothing;

  DEVICE static u32 phases(const Args&) { return 1; }

  DEVICE static void phase(const Args& args, Shared&, Own&, Thread thread, u32) {
    const u32 index = thread.in_grid();
    if (index >= args.count) return;
    Scalar rest = args.scalars[index].canonical();
    const u32 half = 1u << (args.window_bits - 1);
    // Behind all buckets: for digits that are zero.
    const u32 none = args.shared_windows * half;
    u32 carry = 0, window = 0, copy = 0;
    for (u32 i = 0; i < args.windows; ++i) {
      const u32 digit = (rest.limb[0] & (2 * half - 1)) + carry;
      const bool negative = digit > half;
      carry = negative;
      const u32 size = negative ? 2 * half - digit : digit;
      const u32 at = i * args.count + index;
      args.keys[at] = size == 0 ? none : window * half + size - 1;
      args.values[at] = (copy * args.bases + args.first_base + index) << 1 | u32{negative};
      UNROLL for (u32 j = 0; j < Scalar::N; ++j) {
        const u64 next = j + 1 < Scalar::N ? rest.limb[j + 1] : 0;
        rest.limb[j] = static_cast<u32>((next << 32 | rest.limb[j]) >> args.window_bits);
      }
      if (++window == args.shared_windows) {
        window = 0;
        ++copy;
      }
    }
  }
};

}  // namespace proofmill

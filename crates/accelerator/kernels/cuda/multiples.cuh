// Multiples of bases by powers of two, made once when bases are loaded.
#pragma once
#include "platform.cuh"

namespace proofmill {

// 2^doublings times each point, as a sum.
template <class Group>
struct DoublePoints {
  static constexpr u32 THREADS = 128;

  struct Args {
    const typename Group::Point* points;
    typename Group::Sum* multiples;
    u32 count;
    u32 doublings;
  };
  using Shared = Nothing;
  using Own = Nothing;

  DEVICE static u32 phases(const Args&) { return 1; }

  DEVICE static void phase(const Args& args, Shared&, Own&, Thread thread, u32) {
    const u32 index = thread.in_grid();
    if (index >= args.count) return;
    typename Group::Sum multiple = Group::Sum::from(args.points[index]);
    for (u32 i = 0; i < args.doublings; ++i) multiple = multiple.doubled();
    args.multiples[index] = multiple;
  }
};

// Makes sums affine; those of one thread share an inversion (Montgomery's trick).
template <class Group>
struct Normalize {
  static constexpr u32 THREADS = 128;

  struct Args {
    const typename Group::Sum* from;
    typename Group::Point* to;
    // One element for each point: the product of the denominators that precede.
    typename Group::Base* products;
    u32 count;
    // Points of one thread; they lie `stride` apart.
    u32 each;
    u32 stride;
  };
  using Shared = Nothing;
  using Own = Nothing;

  DEVICE static u32 phases(const Args&) { return 1; }

  DEVICE static void phase(const Args& args, Shared&, Own&, Thread thread, u32) {
    using F = typename Group::Base;
    const u32 first = thread.in_grid();
    if (first >= args.stride) return;
    F product = F::one();
    u32 end = first;
    for (u32 i = 0; i < args.each && end < args.count; ++i, end += args.stride) {
      args.products[end] = product;
      product = product * args.from[end].denominator();
    }
    F inverse = F::inverse(product);
    while (end > first) {
      end -= args.stride;
      const typename Group::Sum point = args.from[end];
      args.to[end] = point.affine(inverse * args.products[end]);
      inverse = inverse * point.denominator();
    }
  }
};

}  // namespace proofmill

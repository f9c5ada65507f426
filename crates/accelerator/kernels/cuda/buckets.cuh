// Points into buckets, and buckets into the parts of a window's sum.
#pragma once
#include "platform.cuh"

namespace proofmill {

// The bases, as the sorted values name them.
template <class Group>
struct BasesByValue {
  using Sum = typename Group::Sum;
  const typename Group::Point* points;
  const u32* values;

  DEVICE void add_to(Sum& sum, u32 at) const {
    const u32 value = values[at];
    sum.add(points[value >> 1], value & 1);
  }
};

// Sums that an earlier round left over.
template <class Group>
struct LeftOver {
  using Sum = typename Group::Sum;
  const Sum* sums;
  // Unused: both sources are two pointers.
  const u32* none;

  DEVICE void add_to(Sum& sum, u32 at) const { sum.add(sums[at]); }
};

// Adds runs of equal keys to their buckets, whatever the runs' lengths: each thread takes a segment
// of the same number of items. A run belongs to the thread in whose segment it begins, which adds
// what it has of it to the bucket; what a segment has of a run that began earlier is left over, one
// sum at most for a segment. The left-over sums are the next round's items. So a bucket has one
// writer in each round, and one that takes all points costs a logarithmic number of rounds.
template <class Group, class Source>
struct AddRuns {
  using Sum = typename Group::Sum;

  static constexpr u32 THREADS = 128;

  struct Args {
    Source source;
    const u32* keys;
    Sum* buckets;
    // For each segment; the key is `none` if nothing was left over, and the sum then not written.
    Sum* left_sums;
    u32* left_keys;
    u32 items;
    u32 segment;
    // Items with this key or a higher one belong to no bucket.
    u32 none;
  };
  using Shared = Nothing;
  using Own = Nothing;

  DEVICE static u32 phases(const Args&) { return 1; }

  DEVICE static void phase(const Args& args, Shared&, Own&, Thread thread, u32) {
    const u32 index = thread.in_grid();
    const u64 begin = u64{index} * args.segment;
    if (begin >= args.items) return;
    const u32 first = static_cast<u32>(begin);
    const u32 count = args.items - first < args.segment ? args.items - first : args.segment;
    u32 key = args.keys[first];
    bool left_over = first > 0 && args.keys[first - 1] == key;
    args.left_keys[index] = left_over && key < args.none ? key : args.none;

    Sum sum = Sum::identity();
    for (u32 i = 0; i <= count; ++i) {
      const u32 next = i < count ? args.keys[first + i] : args.none;
      if (i == count || next != key) {
        if (key < args.none) {
          Sum& target = left_over ? args.left_sums[index] : args.buckets[key];
          if (!left_over) sum.add(target);
          target = sum;
        }
        sum = Sum::identity();
        key = next;
        left_over = false;
      }
      if (i < count && key < args.none) args.source.add_to(sum, first + i);
    }
  }
};

// Empties buckets.
template <class Group>
struct ClearBuckets {
  using Sum = typename Group::Sum;

  static constexpr u32 THREADS = 256;

  struct Args {
    Sum* buckets;
    u32 count;
  };
  using Shared = Nothing;
  using Own = Nothing;

  DEVICE static u32 phases(const Args&) { return 1; }

  DEVICE static void phase(const Args& args, Shared&, Own&, Thread thread, u32) {
    const u32 index = thread.in_grid();
    if (index < args.count) args.buckets[index] = Sum::identity();
  }
};

// A window's sum is Σ (i + 1)·bᵢ over its buckets. Cut into chunks of L = 2^l, with j a bucket's
// number in its chunk and t the chunk's, it is Σₜ Wₜ + L·Σₜ t·Sₜ, where Wₜ = Σⱼ (j + 1)·b and
// Sₜ = Σⱼ b. This kernel makes W and S of each chunk.
template <class Group>
struct SumChunks {
  using Sum = typename Group::Sum;

  static constexpr u32 THREADS = 128;

  struct Args {
    const Sum* buckets;
    // All W, then all S.
    Sum* sums;
    u32 chunks;
    u32 chunk_log;
  };
  using Shared = Nothing;
  using Own = Nothing;

  DEVICE static u32 phases(const Args&) { return 1; }

  DEVICE static void phase(const Args& args, Shared&, Own&, Thread thread, u32) {
    const u32 chunk = thread.in_grid();
    if (chunk >= args.chunks) return;
    const Sum* const buckets = args.buckets + (u64{chunk} << args.chunk_log);
    // Both sums stay in memory: only the one that is added to takes registers.
    Sum* const weighted = args.sums + chunk;
    Sum* const sum = weighted + args.chunks;
    *weighted = Sum::identity();
    *sum = Sum::identity();
    // One addition in the loop's body, to each in turn: half the code.
    for (u32 step = 2u << args.chunk_log; step-- > 0;) {
      const bool odd = step & 1;
      Sum* const to = odd ? sum : weighted;
      Sum target = *to;
      target.add(odd ? buckets[step / 2] : *sum);
      *to = target;
    }
  }
};

// Σₜ t·Sₜ is Σₖ 2^k·Rₖ, where Rₖ sums the Sₜ whose t has bit k. Each launch folds neighbouring
// nodes of a window into one: their parts W, S, R₀, R₁, … are added, part by part, and the right
// node's S becomes the part R of this level. When one node is left for each window, the host makes
// W + L·Σ 2^k·Rₖ of its parts.
template <class Group>
struct FoldNodes {
  using Sum = typename Group::Sum;

  static constexpr u32 THREADS = 128;

  struct Args {
    // By part, then by node; nodes of one window are neighbours, a power of two of them.
    const Sum* from;
    // The same, with half the nodes and one part more.
    Sum* to;
    u32 parts;
    // Of `to`, in all windows.
    u32 nodes;
  };
  using Shared = Nothing;
  using Own = Nothing;

  DEVICE static u32 phases(const Args&) { return 1; }

  DEVICE static void phase(const Args& args, Shared&, Own&, Thread thread, u32) {
    const u32 index = thread.in_grid();
    if (index >= (args.parts + 1) * args.nodes) return;
    const u32 part = index / args.nodes, node = index % args.nodes;
    const bool is_new = part == args.parts;
    const Sum* const from = args.from + 2 * ((is_new ? 1 : part) * args.nodes + node);
    Sum sum = from[1];
    if (!is_new) sum.add(from[0]);
    args.to[index] = sum;
  }
};

}  // namespace proofmill

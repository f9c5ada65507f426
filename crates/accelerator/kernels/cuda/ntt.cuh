// Number-theoretic transforms: Stockham's, which needs no reordering, in passes of up to 2⁸ points
// in a block's shared memory.
#pragma once
#include "field.cuh"

namespace proofmill {

// The powers of an element, by two tables: base^e is high[e >> low_bits] · low[e mod 2^low_bits].
template <class F>
struct Powers {
  // Null: there are none, and every power is one.
  const F* high;
  const F* low;
  u32 low_bits;
  u32 unused;

  DEVICE F of(u32 exponent) const {
    const u32 remainder = exponent & ((1u << low_bits) - 1);
    const F power = high[exponent >> low_bits];
    return remainder == 0 ? power : power * low[remainder];
  }
};

// One pass of radix R over N values of which the passes before have transformed digits of radix l
// in all. With i = 0..N/R, the values x[i + t·N/R], t = 0..R, are multiplied by ω_{l·R}^{(i mod l)·t},
// transformed, and go to y[(i/l)·l·R + (i mod l) + k·l]. A block has a few neighbouring i, so that it
// reads whole segments of memory.
//
// Within the block the transform is by decimation in frequency: natural order in, reversed out.
template <class F>
struct NttPass {
  static constexpr u32 RADIX_LOG = 8;
  static constexpr u32 COLUMNS_LOG = 2;
  static constexpr u32 TILE = 1u << (RADIX_LOG + COLUMNS_LOG);
  static constexpr u32 THREADS = TILE / 2;

  struct Args {
    const F* from;
    F* to;
    // Of ω_N.
    Powers<F> roots;
    // The first pass multiplies value n by these powers' n-th, the last one its results.
    Powers<F> before;
    Powers<F> after;
    u32 size_log;
    u32 radix_log;
    // log₂ l.
    u32 done_log;
    // A block has 2^columns_log of the i, and half as many threads as values.
    u32 columns_log;
  };
  // Limb by limb: threads that are neighbours read neighbouring words.
  struct Shared {
    u32 limb[F::N][TILE];
  };
  using Own = Nothing;

  DEVICE static F load(const Shared& shared, u32 at) {
    F r;
    UNROLL for (u32 i = 0; i < F::N; ++i) r.limb[i] = shared.limb[i][at];
    return r;
  }

  DEVICE static void store(Shared& shared, u32 at, const F& value) {
    UNROLL for (u32 i = 0; i < F::N; ++i) shared.limb[i][at] = value.limb[i];
  }

  // One to load, one for each stage, one to store.
  DEVICE static u32 phases(const Args& args) { return args.radix_log + 2; }

  DEVICE static void phase(const Args& args, Shared& shared, Own&, Thread thread, u32 number) {
    if (number == 0) {
      for (u32 half = 0; half < 2; ++half) fetch(args, shared, thread, half);
    } else if (number <= args.radix_log) {
      butterfly(args, shared, thread, number - 1);
    } else {
      for (u32 half = 0; half < 2; ++half) put(args, shared, thread, half);
    }
  }

 private:
  DEVICE static void fetch(const Args& args, Shared& shared, Thread thread, u32 half) {
    const u32 at = half * thread.threads + thread.index;
    const u32 row = at >> args.columns_log;
    const u32 i = column(args, thread, at & ((1u << args.columns_log) - 1));
    const u32 from = i + (row << (args.size_log - args.radix_log));
    F value = args.from[from];
    if (args.before.high != nullptr) value = value * args.before.of(from);
    if (args.done_log > 0) {
      const u32 residue = i & ((1u << args.done_log) - 1);
      value = value * args.roots.of((residue * row) << (args.size_log - args.radix_log - args.done_log));
    }
    store(shared, at, value);
  }

  DEVICE static void butterfly(const Args& args, Shared& shared, Thread thread, u32 stage) {
    const u32 distance_log = args.radix_log - 1 - stage;
    const u32 pair = thread.index >> args.columns_log;
    const u32 position = pair & ((1u << distance_log) - 1);
    const u32 row = (pair >> distance_log << (distance_log + 1)) + position;
    const u32 left = (row << args.columns_log) + (thread.index & ((1u << args.columns_log) - 1));
    const u32 right = left + (1u << (distance_log + args.columns_log));
    const F a = load(shared, left), b = load(shared, right);
    store(shared, left, a + b);
    const u32 exponent = position << (stage + args.size_log - args.radix_log);
    store(shared, right, (a - b) * args.roots.of(exponent));
  }

  DEVICE static void put(const Args& args, const Shared& shared, Thread thread, u32 half) {
    const u32 at = half * thread.threads + thread.index;
    // In the first pass a column's results are neighbours, later the columns are.
    const bool by_column = args.done_log == 0;
    const u32 in_column = by_column ? at >> args.radix_log : at & ((1u << args.columns_log) - 1);
    const u32 k = by_column ? at & ((1u << args.radix_log) - 1) : at >> args.columns_log;
    const u32 i = column(args, thread, in_column);
    const u32 residue = i & ((1u << args.done_log) - 1);
    const u32 to = ((i - residue) << args.radix_log) + residue + (k << args.done_log);
    F value = load(shared, (reversed(k, args.radix_log) << args.columns_log) + in_column);
    if (args.after.high != nullptr) value = value * args.after.of(to);
    args.to[to] = value;
  }

  DEVICE static u32 column(const Args& args, Thread thread, u32 in_block) {
    return (thread.block << args.columns_log) + in_block;
  }

  DEVICE static u32 reversed(u32 value, u32 bits) {
    u32 r = 0;
    for (u32 i = 0; i < bits; ++i) r |= (value >> i & 1) << (bits - 1 - i);
    return r;
  }
};

}  // namespace proofmill

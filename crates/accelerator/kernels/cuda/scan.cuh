// Exclusive prefix sums.
#pragma once
#include "platform.cuh"

namespace proofmill {

// Each block replaces its tile of `values` by the sums of what precedes within the tile, and writes
// the tile's sum. Sums of tiles are scanned in the same way, then added (`AddTotals`).
struct ScanTiles {
  static constexpr u32 THREADS = 256;
  static constexpr u32 EACH = 8;
  static constexpr u32 TILE = THREADS * EACH;

  struct Args {
    u32* values;
    u32* totals;
    u32 count;
  };
  struct Shared {
    u32 sums[2][THREADS];
  };
  struct Own {
    u32 values[EACH];
  };

  // One to load, eight to double the reach of each thread's sum, one to store.
  static constexpr u32 DOUBLINGS = 8;
  static_assert(1u << DOUBLINGS == THREADS, "sums must reach the first thread");
  DEVICE static u32 phases(const Args&) { return DOUBLINGS + 2; }

  DEVICE static void phase(const Args& args, Shared& shared, Own& own, Thread thread, u32 number) {
    const u32 first = thread.block * TILE + thread.index * EACH;
    if (number == 0) {
      u32 sum = 0;
      UNROLL for (u32 i = 0; i < EACH; ++i) {
        own.values[i] = first + i < args.count ? args.values[first + i] : 0;
        sum += own.values[i];
      }
      shared.sums[0][thread.index] = sum;
    } else if (number <= DOUBLINGS) {
      const u32 reach = 1u << (number - 1);
      const u32* from = shared.sums[(number - 1) % 2];
      const u32 before = thread.index >= reach ? from[thread.index - reach] : 0;
      shared.sums[number % 2][thread.index] = from[thread.index] + before;
    } else {
      const u32* sums = shared.sums[DOUBLINGS % 2];
      u32 sum = thread.index > 0 ? sums[thread.index - 1] : 0;
      UNROLL for (u32 i = 0; i < EACH; ++i) {
        if (first + i < args.count) args.values[first + i] = sum;
        sum += own.values[i];
      }
      if (thread.index == THREADS - 1) args.totals[thread.block] = sum;
    }
  }
};

// Adds to each tile what precedes it.
struct AddTotals {
  static constexpr u32 THREADS = ScanTiles::THREADS;

  struct Args {
    u32* values;
    const u32* totals;
    u32 count;
  };
  using Shared = Nothing;
  using Own = Nothing;

  DEVICE static u32 phases(const Args&) { return 1; }

  DEVICE static void phase(const Args& args, Shared&, Own&, Thread thread, u32) {
    const u32 total = args.totals[thread.block];
    UNROLL for (u32 i = 0; i < ScanTiles::EACH; ++i) {
      const u32 at = thread.block * ScanTiles::TILE + i * THREADS + thread.index;
      if (at < args.count) args.values[at] += total;
    }
  }
};

}  // namespace proofmill

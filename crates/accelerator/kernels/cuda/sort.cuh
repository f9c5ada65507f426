// Sorting pairs of (key, value) by key: stable, six bits of the key at a time, lowest first. The
// result depends on the input alone, never on which block runs when.
//
// One pass counts each tile's digits (`CountDigits`), scans the counts of all tiles, digit by digit
// (scan.cuh), and moves each pair to where its digit's pairs of earlier tiles and threads end
// (`MovePairs`).
#pragma once
#include "platform.cuh"

namespace proofmill {

// What both kernels know of a tile.
struct DigitTile {
  static constexpr u32 THREADS = 256;
  static constexpr u32 EACH = 8;
  static constexpr u32 PAIRS = THREADS * EACH;
  static constexpr u32 BITS = 6;
  static constexpr u32 DIGITS = 1u << BITS;

  // Each thread counts in a column of its own. A row is padded to begin in another bank.
  struct Counts {
    u16 of[DIGITS][THREADS + 2];
  };

  DEVICE static u32 digit(u32 key, u32 shift) { return key >> shift & (DIGITS - 1); }

  // Counts the digits of a thread's pairs, which are neighbours.
  DEVICE static void count(Counts& counts, const u32* keys, u32 pairs, u32 shift, Thread thread) {
    for (u32 d = 0; d < DIGITS; ++d) counts.of[d][thread.index] = 0;
    const u32 first = thread.block * PAIRS + thread.index * EACH;
    for (u32 i = first; i < first + EACH && i < pairs; ++i) {
      ++counts.of[digit(keys[i], shift)][thread.index];
    }
  }

  // A row is summed by four threads, a quarter each.
  static constexpr u32 QUARTER = THREADS / 4;
  static_assert(DIGITS * 4 == THREADS, "four threads for each digit");

  DEVICE static u32 sum_quarter(const Counts& counts, Thread thread) {
    const u32 row = thread.index / 4, first = thread.index % 4 * QUARTER;
    u32 sum = 0;
    for (u32 i = first; i < first + QUARTER; ++i) sum += counts.of[row][i];
    return sum;
  }
};

struct CountDigits {
  static constexpr u32 THREADS = DigitTile::THREADS;

  struct Args {
    const u32* keys;
    // By digit, then by tile.
    u32* counts;
    u32 pairs;
    u32 tiles;
    u32 shift;
  };
  struct Shared {
    DigitTile::Counts counts;
    u32 quarters[THREADS];
  };
  using Own = Nothing;

  DEVICE static u32 phases(const Args&) { return 3; }

  DEVICE static void phase(const Args& args, Shared& shared, Own&, Thread thread, u32 number) {
    if (number == 0) {
      DigitTile::count(shared.counts, args.keys, args.pairs, args.shift, thread);
    } else if (number == 1) {
      shared.quarters[thread.index] = DigitTile::sum_quarter(shared.counts, thread);
    } else if (thread.index < DigitTile::DIGITS) {
      const u32* quarters = shared.quarters + 4 * thread.index;
      args.counts[thread.index * args.tiles + thread.block] =
          quarters[0] + quarters[1] + quarters[2] + quarters[3];
    }
  }
};

struct MovePairs {
  static constexpr u32 THREADS = DigitTile::THREADS;

  struct Args {
    const u32* keys;
    const u32* values;
    u32* sorted_keys;
    u32* sorted_values;
    // Where each digit of each tile begins: the counts, scanned.
    const u32* begins;
    u32 pairs;
    u32 tiles;
    u32 shift;
  };
  using Shared = CountDigits::Shared;
  using Own = Nothing;

  DEVICE static u32 phases(const Args&) { return 4; }

  DEVICE static void phase(const Args& args, Shared& shared, Own&, Thread thread, u32 number) {
    if (number == 0) {
      DigitTile::count(shared.counts, args.keys, args.pairs, args.shift, thread);
    } else if (number == 1) {
      shared.quarters[thread.index] = DigitTile::sum_quarter(shared.counts, thread);
    } else if (number == 2) {
      // Counts become the number of the tile's pairs of that digit in earlier threads.
      const u32 row = thread.index / 4, quarter = thread.index % 4;
      u32 before = 0;
      for (u32 i = 0; i < quarter; ++i) before += shared.quarters[4 * row + i];
      for (u32 i = quarter * DigitTile::QUARTER; i < (quarter + 1) * DigitTile::QUARTER; ++i) {
        const u32 count = shared.counts.of[row][i];
        shared.counts.of[row][i] = static_cast<u16>(before);
        before += count;
      }
    } else {
      const u32 first = thread.block * DigitTile::PAIRS + thread.index * DigitTile::EACH;
      for (u32 i = first; i < first + DigitTile::EACH && i < args.pairs; ++i) {
        const u32 key = args.keys[i];
        const u32 digit = DigitTile::digit(key, args.shift);
        const u32 at =
            args.begins[digit * args.tiles + thread.block] + shared.counts.of[digit][thread.index]++;
        args.sorted_keys[at] = key;
        args.sorted_values[at] = args.values[i];
      }
    }
  }
};

}  // namespace proofmill

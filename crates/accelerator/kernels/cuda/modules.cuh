// The kernels of a module, by name. A module is a file that is compiled by itself: a card loads only
// those that its work needs.
#pragma once
#include "buckets.cuh"
#include "edwards.cuh"
#include "moduli.cuh"
#include "multiples.cuh"
#include "ntt.cuh"
#include "recode.cuh"
#include "scan.cuh"
#include "sort.cuh"
#include "weierstrass.cuh"

#define SORT_KERNELS                                        \
  KERNEL(sort_scan_tiles, proofmill::ScanTiles)             \
  KERNEL(sort_add_totals, proofmill::AddTotals)             \
  KERNEL(sort_count_digits, proofmill::CountDigits)         \
  KERNEL(sort_move_pairs, proofmill::MovePairs)

#define SCALAR_KERNELS(name, Field)                         \
  KERNEL(name##_recode, proofmill::Recode<Field>)           \
  KERNEL(name##_ntt_pass, proofmill::NttPass<Field>)

#define POINT_KERNELS(name, Group)                                                            \
  KERNEL(name##_clear_buckets, proofmill::ClearBuckets<Group>)                                \
  KERNEL(name##_add_bases, proofmill::AddRuns<Group, proofmill::BasesByValue<Group>>)         \
  KERNEL(name##_add_left_over, proofmill::AddRuns<Group, proofmill::LeftOver<Group>>)         \
  KERNEL(name##_sum_chunks, proofmill::SumChunks<Group>)                                      \
  KERNEL(name##_fold_nodes, proofmill::FoldNodes<Group>)                                      \
  KERNEL(name##_double_points, proofmill::DoublePoints<Group>)                                \
  KERNEL(name##_normalize, proofmill::Normalize<Group>)

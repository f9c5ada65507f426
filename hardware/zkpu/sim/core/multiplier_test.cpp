// SPDX-License-Identifier: MIT OR Apache-2.0
// The field multiplier in RTL alone, against the oracle: a product a clock, edge operands with each other and random ones.
//   multiplier_test [SIGNATURE]    ends with 'N passed, N failed', one for each kind of operands and one for the signature
// Products of FIOS are the oracle's to the bit, below 2 P; those of Karatsuba are congruent to them and below 4 P.
#include <map>
#include "Vfield_mul.h"
#include "problem.h"
#include "verilated.h"

namespace {

constexpr int LATENCY = 17;
constexpr int RANDOM = 20000;

std::map<std::string, int> wrong;  // products of each kind
uint64_t signature = 1469598103934665603ull;  // FNV-1a over the bytes of the products modulo P

struct Pair {
  Fe a, b;
  const char *kind;
};

Fe all_ones() {
  Fe r;
  memset(r.w, 0xff, sizeof r.w);
  return r;
}

// n P + more, modulo 2^384.
Fe times_p(int n, int more) {
  Fe r = zero();
  for (int i = 0; i < n; i++) {
    u128 c = 0;
    for (int w = 0; w < 6; w++) {
      c += (u128)r.w[w] + constants::P[w];
      r.w[w] = (uint64_t)c;
      c >>= 64;
    }
  }
  u128 c = (u128)r.w[0] + (uint64_t)(int64_t)more;
  r.w[0] = (uint64_t)c;
  uint64_t sign = more < 0 ? ~0ull : 0;
  c >>= 64;
  for (int w = 1; w < 6; w++) {
    c += (u128)r.w[w] + sign;
    r.w[w] = (uint64_t)c;
    c >>= 64;
  }
  return r;
}

// A power of two, and the number below it.
Fe power(int bit, bool below) {
  Fe r = zero();
  if (!below) r.w[bit / 64] = 1ull << (bit % 64);
  for (int i = 0; below && i < bit; i++) r.w[i / 64] |= 1ull << (i % 64);
  return r;
}

std::vector<Pair> edges() {
  // Any two of these: both below 12 P, so that their product is below 144 P^2, the oracle's bound.
  std::vector<Fe> both{zero(), fe(constants::ONE)};
  for (int n : {0, 1, 2, 4, 8, 11})
    for (int more : {-1, 0, 1})
      if (n || more >= 0) both.push_back(times_p(n, more));
  for (int bit : {1, 16, 17, 26, 45, 46, 47, 48, 49, 95, 96, 143, 144, 191, 192, 239, 240, 287, 288, 335, 336, 363, 364, 376, 380})
    for (bool below : {false, true}) both.push_back(power(bit, below));
  std::vector<Pair> pairs;
  for (const Fe &a : both)
    for (const Fe &b : both) pairs.push_back({a, b, "edge"});
  // The largest operands, where the other is small enough: 8 P by 18 P, and 2^384 - 1, which is 152 P, by less than P.
  std::vector<std::pair<Fe, Fe>> large{{times_p(8, -1), times_p(18, -1)}, {times_p(7, 0), times_p(20, 0)}};
  for (const Fe &small : {zero(), power(0, false), power(48, true), power(375, true), power(376, false)}) large.push_back({all_ones(), small});
  for (auto &[a, b] : large) {
    pairs.push_back({a, b, "large"});
    pairs.push_back({b, a, "large"});
  }
  return pairs;
}

// Random operands: below 8 P, a quarter with limbs of 48 bits that are all zero or all one; a quarter any 384 bits by less than P.
std::vector<Pair> randoms() {
  Rng rng(377);
  auto operand = [&](bool limbs) {
    Fe r = rng.field();
    for (int doublings = (int)rng.below(4); doublings > 0; doublings--)
      for (int w = 5; w >= 0; w--) r.w[w] = r.w[w] << 1 | (w ? r.w[w - 1] >> 63 : 0);
    for (int limb = 0; limbs && limb < 7; limb++)
      if (uint64_t kind = rng.below(3); kind < 2)
        for (int bit = 48 * limb; bit < 48 * limb + 48; bit++) {
          uint64_t mask = 1ull << (bit % 64);
          r.w[bit / 64] = kind ? r.w[bit / 64] | mask : r.w[bit / 64] & ~mask;
        }
    return r;
  };
  std::vector<Pair> pairs;
  for (int i = 0; i < RANDOM; i++) {
    Fe a = operand(i % 4 == 0), b = operand(i % 4 == 0);
    if (i % 4 == 1) {
      for (uint64_t &word : a.w) word = rng.next();
      b = rng.field();
      if (i % 8 == 1) std::swap(a, b);
    }
    pairs.push_back({a, b, "random"});
  }
  return pairs;
}

Fe read(const Vfield_mul &top) {
  Fe r;
  for (int w = 0; w < 12; w++) ((uint32_t *)r.w)[w] = top.product[w];
  return r;
}

void judge(const Pair &pair, const Fe &product) {
  Fe right = mul_lazy(pair.a, pair.b), reduced = product;
  bool good = product == right;
  canonical(reduced);
  if (EXACT == 0) {
    Fe bound = times_p(4, 0);
    canonical(right);
    good = reduced == right && !geq(product.w, bound.w, 6);
  } else {
    Fe bound = times_p(2, 0);
    good = good && !geq(product.w, bound.w, 6);
  }
  for (uint64_t word : reduced.w)
    for (int byte = 0; byte < 8; byte++) signature = (signature ^ (word >> 8 * byte & 0xff)) * 1099511628211ull;
  int &count = wrong[pair.kind];
  if (good || ++count > 10) return;
  printf("FAILED %s:", pair.kind);
  for (const Fe &value : {pair.a, pair.b, product}) {
    printf(" ");
    for (int w = 5; w >= 0; w--) printf("%016llx", (unsigned long long)value.w[w]);
  }
  printf("\n");
}

}  // namespace

int main(int argc, char **argv) {
  std::vector<Pair> pairs = edges();
  for (const Pair &pair : randoms()) pairs.push_back(pair);
  VerilatedContext context;
  Vfield_mul top{&context};
  top.valid = 1;
  for (size_t i = 0; i < pairs.size() + LATENCY; i++) {
    const Pair &pair = pairs[std::min(i, pairs.size() - 1)];
    for (int w = 0; w < 12; w++) {
      top.a[w] = ((const uint32_t *)pair.a.w)[w];
      top.b[w] = ((const uint32_t *)pair.b.w)[w];
    }
    top.clk = 0;
    top.eval();
    if (i >= LATENCY) judge(pairs[i - LATENCY], read(top));
    top.clk = 1;
    top.eval();
  }
  int passed = 0, failed = 0;
  for (auto &[kind, count] : wrong) {
    printf("%s: %d wrong\n", kind.c_str(), count);
    (count ? failed : passed)++;
  }
  printf("%zu products, signature %016llx\n", pairs.size(), (unsigned long long)signature);
  if (argc > 1) {
    bool same = strtoull(argv[1], nullptr, 16) == signature;
    if (!same) printf("FAILED signature is not %s\n", argv[1]);
    (same ? passed : failed)++;
  }
  printf("%d passed, %d failed\n", passed, failed);
  return failed != 0;
}

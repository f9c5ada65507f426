// SPDX-License-Identifier: MIT OR Apache-2.0
// What a compiler expects of its run-time library on RV32I: memory functions, products, wide shifts.
#include <stdint.h>

void *memset(void *to, int value, unsigned long bytes) {
  uint8_t *p = to;
  while (bytes && ((uintptr_t)p & 3)) { *p++ = (uint8_t)value; bytes--; }
  uint32_t word = (uint8_t)value;
  word |= word << 8;
  word |= word << 16;
  // `volatile` keeps the compiler from turning the loop into a call of itself.
  for (; bytes >= 4; bytes -= 4, p += 4) *(volatile uint32_t *)(void *)p = word;
  for (; bytes; bytes--) *(volatile uint8_t *)p++ = (uint8_t)value;
  return to;
}

void *memcpy(void *to, const void *from, unsigned long bytes) {
  uint8_t *p = to;
  const uint8_t *q = from;
  if ((((uintptr_t)p | (uintptr_t)q) & 3) == 0)
    for (; bytes >= 4; bytes -= 4, p += 4, q += 4) *(volatile uint32_t *)(void *)p = *(const uint32_t *)(const void *)q;
  for (; bytes; bytes--) *(volatile uint8_t *)p++ = *q++;
  return to;
}

uint32_t __mulsi3(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (; a; a >>= 1, b <<= 1) if (a & 1) product += b;
  return product;
}

uint64_t __muldi3(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  for (; a; a >>= 1, b <<= 1) if (a & 1) product += b;
  return product;
}

union wide { uint64_t all; struct { uint32_t low, high; } part; };

uint64_t __ashldi3(uint64_t value, int by) {
  union wide v = {.all = value}, r;
  if (by == 0) return value;
  if (by >= 32) { r.part.low = 0; r.part.high = v.part.low << (by - 32); }
  else { r.part.low = v.part.low << by; r.part.high = v.part.high << by | v.part.low >> (32 - by); }
  return r.all;
}

uint64_t __lshrdi3(uint64_t value, int by) {
  union wide v = {.all = value}, r;
  if (by == 0) return value;
  if (by >= 32) { r.part.high = 0; r.part.low = v.part.high >> (by - 32); }
  else { r.part.high = v.part.high >> by; r.part.low = v.part.low >> by | v.part.high << (32 - by); }
  return r.all;
}

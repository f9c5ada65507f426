// SPDX-License-Identifier: MIT OR Apache-2.0
// The field multiplier's C model (rtl/field/mul_model.sv).
#include "oracle.h"
#include "svdpi.h"

extern "C" void field_mul_model(const svBitVecVal* a, const svBitVecVal* b, svBitVecVal* product) {
  Fe x, y;
  memcpy(x.w, a, 48);
  memcpy(y.w, b, 48);
  Fe r = mul_lazy(x, y);
  memcpy(product, r.w, 48);
}

// Points of G1 of BLS12-377, which is a twisted Edwards curve too.
#include "modules.cuh"

namespace proofmill {

struct Bls12_377Edwards {
  using Base = Field<Bls12_377Base>;

  // In Montgomery form.
  DEVICE static Base twice_d() {
    return {{0x44a706c6, 0xf24b7e84, 0x80faa8fa, 0xeae02375, 0x7ef38fa5, 0x0f4d7cf2,
              0xc5f2bb26, 0x5597097d, 0x0d95a93e, 0x8bf6c1dd, 0xfbff628a, 0x01784602}};
  }
};

}  // namespace proofmill

POINT_KERNELS(bls12_377_g1, proofmill::Edwards<proofmill::Bls12_377Edwards>)

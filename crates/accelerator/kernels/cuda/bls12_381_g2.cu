// Points of G2 of BLS12-381.
#include "modules.cuh"

POINT_KERNELS(bls12_381_g2, proofmill::Weierstrass<proofmill::Quadratic<proofmill::Field<proofmill::Bls12_381Base>>>)

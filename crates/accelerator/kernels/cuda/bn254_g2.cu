// Points of G2 of BN254.
#include "modules.cuh"

POINT_KERNELS(bn254_g2, proofmill::Weierstrass<proofmill::Quadratic<proofmill::Field<proofmill::Bn254Base>>>)

// Points of G1 of BN254.
#include "modules.cuh"

POINT_KERNELS(bn254_g1, proofmill::Weierstrass<proofmill::Field<proofmill::Bn254Base>>)

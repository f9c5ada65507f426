// Points of G1 of BLS12-381.
#include "modules.cuh"

POINT_KERNELS(bls12_381_g1, proofmill::Weierstrass<proofmill::Field<proofmill::Bls12_381Base>>)

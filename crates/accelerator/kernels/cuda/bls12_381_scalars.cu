// What works on the scalars of BLS12-381: recoding, and transforms.
#include "modules.cuh"

SCALAR_KERNELS(bls12_381, proofmill::Field<proofmill::Bls12_381Scalar>)

// What works on the scalars of BLS12-377: recoding, and transforms.
#include "modules.cuh"

SCALAR_KERNELS(bls12_377, proofmill::Field<proofmill::Bls12_377Scalar>)

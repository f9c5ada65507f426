// What works on the scalars of BN254: recoding, and transforms.
#include "modules.cuh"

SCALAR_KERNELS(bn254, proofmill::Field<proofmill::Bn254Scalar>)

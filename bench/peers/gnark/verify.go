package main

import (
	"fmt"

	fr_bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	fr_bn254 "github.com/consensys/gnark-crypto/ecc/bn254/fr"
	groth16_bls12381 "github.com/consensys/gnark/backend/groth16/bls12-381"
	groth16_bn254 "github.com/consensys/gnark/backend/groth16/bn254"
	"github.com/consensys/gnark/logger"
)

// groth16Verifier verifies proofs one after the other, each as gnark verifies one: that its points are
// in their subgroups, and the product of pairings.
//
// The input: of the verifying key α, β, γ, δ and the list of the instance's points; then a list of
// proofs, each A, B, C and the list of its public inputs.
func groth16Verifier(curve string, in *input) (*job, error) {
	logger.Disable()
	switch curve {
	case "bls12-381":
		return bls12381Verifier(in)
	case "bn254":
		return bn254Verifier(in)
	}
	return nil, fmt.Errorf("no verifier for %s here", curve)
}

func bls12381Verifier(in *input) (*job, error) {
	var key groth16_bls12381.VerifyingKey
	key.G1.Alpha = bls12381G1(in)
	key.G2.Beta, key.G2.Gamma, key.G2.Delta = bls12381G2(in), bls12381G2(in), bls12381G2(in)
	key.G1.K = list(in, bls12381G1)
	claims := list(in, func(in *input) claim[groth16_bls12381.Proof, fr_bls12381.Element] {
		var points groth16_bls12381.Proof
		points.Ar, points.Bs, points.Krs = bls12381G1(in), bls12381G2(in), bls12381G1(in)
		return claim[groth16_bls12381.Proof, fr_bls12381.Element]{points, list(in, bls12381Fr.read)}
	})
	if err := key.Precompute(); err != nil {
		return nil, err
	}
	return verifierJob(claims, func(proof *groth16_bls12381.Proof, inputs []fr_bls12381.Element) error {
		return groth16_bls12381.Verify(proof, &key, inputs)
	}), nil
}

func bn254Verifier(in *input) (*job, error) {
	var key groth16_bn254.VerifyingKey
	key.G1.Alpha = bn254G1(in)
	key.G2.Beta, key.G2.Gamma, key.G2.Delta = bn254G2(in), bn254G2(in), bn254G2(in)
	key.G1.K = list(in, bn254G1)
	claims := list(in, func(in *input) claim[groth16_bn254.Proof, fr_bn254.Element] {
		var points groth16_bn254.Proof
		points.Ar, points.Bs, points.Krs = bn254G1(in), bn254G2(in), bn254G1(in)
		return claim[groth16_bn254.Proof, fr_bn254.Element]{points, list(in, bn254Fr.read)}
	})
	if err := key.Precompute(); err != nil {
		return nil, err
	}
	return verifierJob(claims, func(proof *groth16_bn254.Proof, inputs []fr_bn254.Element) error {
		return groth16_bn254.Verify(proof, &key, inputs)
	}), nil
}

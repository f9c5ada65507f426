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
	var verify func() (int, error)
	var err error
	switch curve {
	case "bls12-381":
		verify, err = bls12381Verifier(in)
	case "bn254":
		verify, err = bn254Verifier(in)
	default:
		err = fmt.Errorf("no verifier for %s here", curve)
	}
	if err != nil {
		return nil, err
	}
	var valid int
	return &job{
		work: func() error {
			valid, err = verify()
			return err
		},
		result: func() string { return fmt.Sprint(valid, " are valid") },
	}, nil
}

func bls12381Verifier(in *input) (func() (int, error), error) {
	type proof struct {
		points groth16_bls12381.Proof
		inputs fr_bls12381.Vector
	}
	var key groth16_bls12381.VerifyingKey
	key.G1.Alpha = bls12381G1(in)
	key.G2.Beta, key.G2.Gamma, key.G2.Delta = bls12381G2(in), bls12381G2(in), bls12381G2(in)
	key.G1.K = list(in, bls12381G1)
	proofs := list(in, func(in *input) proof {
		var one proof
		one.points.Ar, one.points.Bs, one.points.Krs = bls12381G1(in), bls12381G2(in), bls12381G1(in)
		one.inputs = list(in, bls12381Fr)
		return one
	})
	if err := key.Precompute(); err != nil {
		return nil, err
	}
	return func() (int, error) {
		for i := range proofs {
			// The inputs may be appended to.
			inputs := append(fr_bls12381.Vector{}, proofs[i].inputs...)
			if err := groth16_bls12381.Verify(&proofs[i].points, &key, inputs); err != nil {
				return 0, err
			}
		}
		return len(proofs), nil
	}, nil
}

func bn254Verifier(in *input) (func() (int, error), error) {
	type proof struct {
		points groth16_bn254.Proof
		inputs fr_bn254.Vector
	}
	var key groth16_bn254.VerifyingKey
	key.G1.Alpha = bn254G1(in)
	key.G2.Beta, key.G2.Gamma, key.G2.Delta = bn254G2(in), bn254G2(in), bn254G2(in)
	key.G1.K = list(in, bn254G1)
	proofs := list(in, func(in *input) proof {
		var one proof
		one.points.Ar, one.points.Bs, one.points.Krs = bn254G1(in), bn254G2(in), bn254G1(in)
		one.inputs = list(in, bn254Fr)
		return one
	})
	if err := key.Precompute(); err != nil {
		return nil, err
	}
	return func() (int, error) {
		for i := range proofs {
			inputs := append(fr_bn254.Vector{}, proofs[i].inputs...)
			if err := groth16_bn254.Verify(&proofs[i].points, &key, inputs); err != nil {
				return 0, err
			}
		}
		return len(proofs), nil
	}, nil
}

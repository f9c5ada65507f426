package main

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark/backend/groth16"
	"github.com/consensys/gnark/backend/witness"
	"github.com/consensys/gnark/constraint"
	cs_bls12381 "github.com/consensys/gnark/constraint/bls12-381"
	cs_bn254 "github.com/consensys/gnark/constraint/bn254"
	"github.com/consensys/gnark/logger"
)

// groth16Prover proves the very system that the input gives, not a circuit of gnark's frontend: its
// rows become gnark's generic constraints one to one, and every variable is an input, so that
// nothing is left to solve and gnark, as the others, checks the rows and proves.
//
// The input: variables, instance variables (the constant one first), the coefficients as a list of
// field elements; for each row three lists of (variable, coefficient) as two 32-bit numbers, which
// a list of rows makes; the values of all variables.
func groth16Prover(curve string, in *input) (*job, error) {
	logger.Disable()
	var field ecc.ID
	var system constraint.R1CS[constraint.U64]
	const rows = 1 << 17
	switch curve {
	case "bls12-381":
		field, system = ecc.BLS12_381, cs_bls12381.NewR1CS(rows)
	case "bn254":
		field, system = ecc.BN254, cs_bn254.NewR1CS(rows)
	default:
		return nil, fmt.Errorf("no prover for %s here", curve)
	}

	variables, instance := in.length(), in.length()
	for i := range variables {
		switch {
		case i == 0:
			system.AddPublicVariable("1")
		case i < instance:
			system.AddPublicVariable(fmt.Sprint("x", i))
		default:
			system.AddSecretVariable(fmt.Sprint("w", i))
		}
	}
	// A field element of either curve has 32 bytes.
	number := func(in *input) *big.Int {
		bytes := slices.Clone(in.take(32))
		slices.Reverse(bytes)
		return new(big.Int).SetBytes(bytes)
	}
	coefficients := list(in, func(in *input) constraint.U64 {
		return system.FromInterface(number(in))
	})
	term := func(in *input) constraint.Term {
		variable, coefficient := in.uint32(), in.uint32()
		return system.MakeTerm(coefficients[coefficient], int(variable))
	}
	gate := system.AddBlueprint(&constraint.BlueprintGenericR1C{})
	for range in.length() {
		system.AddR1C(constraint.R1C{L: list(in, term), R: list(in, term), O: list(in, term)}, gate)
	}
	values := list(in, number)

	assignment, err := witness.New(field.ScalarField())
	if err != nil {
		return nil, err
	}
	channel := make(chan any)
	go func() {
		defer close(channel)
		for _, value := range values[1:] {
			channel <- value
		}
	}()
	if err := assignment.Fill(instance-1, variables-instance, channel); err != nil {
		return nil, err
	}
	public, err := assignment.Public()
	if err != nil {
		return nil, err
	}
	provingKey, verifyingKey, err := groth16.Setup(system)
	if err != nil {
		return nil, err
	}
	var proof groth16.Proof
	return &job{
		work: func() error {
			var err error
			proof, err = groth16.Prove(system, provingKey, assignment)
			return err
		},
		result: func() string {
			if err := groth16.Verify(proof, verifyingKey, public); err != nil {
				return err.Error()
			}
			return "verifies"
		},
	}, nil
}

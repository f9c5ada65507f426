package main

import "fmt"

func msm(key string, in *input) (*job, error) {
	switch key {
	case "[msm bls12-381 g1]":
		return bls12381MsmG1(in), nil
	case "[msm bls12-381 g2]":
		return bls12381MsmG2(in), nil
	case "[msm bls12-377 g1]":
		return bls12377MsmG1(in), nil
	case "[msm bls12-377 g2]":
		return bls12377MsmG2(in), nil
	case "[msm bn254 g1]":
		return bn254MsmG1(in), nil
	case "[msm bn254 g2]":
		return bn254MsmG2(in), nil
	case "[msm grumpkin g1]":
		return grumpkinMsmG1(in), nil
	}
	return nil, fmt.Errorf("no job is called %s", key)
}

func ntt(curve, transform string, reversed bool, in *input) (*job, error) {
	var task *job
	switch curve {
	case "bls12-381":
		task = bls12381Ntt(in, transform, reversed)
	case "bls12-377":
		task = bls12377Ntt(in, transform, reversed)
	case "bn254":
		task = bn254Ntt(in, transform, reversed)
	}
	if task == nil {
		return nil, fmt.Errorf("no %s transform for %s", transform, curve)
	}
	return task, nil
}

func pairing(curve string, in *input) (*job, error) {
	switch curve {
	case "bls12-381":
		return bls12381Pairing(in), nil
	case "bls12-377":
		return bls12377Pairing(in), nil
	case "bn254":
		return bn254Pairing(in), nil
	}
	return nil, fmt.Errorf("no pairing on %s", curve)
}

// gnark-crypto's default is two tasks for each processor; a single thread gains nothing from a split.
func msmTasks() int {
	if threads > 1 {
		return 2 * threads
	}
	return 1
}

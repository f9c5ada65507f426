package main

import (
	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fp"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr/fft"
)

var (
	bn254Fp = codecOf(fp.LittleEndian.Element, fp.LittleEndian.PutElement)
	bn254Fr = codecOf(fr.LittleEndian.Element, fr.LittleEndian.PutElement)
)

func bn254G1(in *input) bn254.G1Affine {
	return bn254.G1Affine{X: bn254Fp.read(in), Y: bn254Fp.read(in)}
}

func bn254G2(in *input) bn254.G2Affine {
	var point bn254.G2Affine
	point.X.A0, point.X.A1 = bn254Fp.read(in), bn254Fp.read(in)
	point.Y.A0, point.Y.A1 = bn254Fp.read(in), bn254Fp.read(in)
	return point
}

func bn254MsmG1(in *input) *job {
	return msmJob(list(in, bn254G1), list(in, bn254Fr.read), func(sum bn254.G1Affine) [][]byte {
		return bn254Fp.parts(sum.X, sum.Y)
	})
}

func bn254MsmG2(in *input) *job {
	return msmJob(list(in, bn254G2), list(in, bn254Fr.read), func(sum bn254.G2Affine) [][]byte {
		return bn254Fp.parts(sum.X.A0, sum.X.A1, sum.Y.A0, sum.Y.A1)
	})
}

func bn254Pairing(in *input) *job {
	return pairingJob(list(in, bn254G1), list(in, bn254G2), bn254.Pair)
}

func bn254Ntt(in *input, transform string, reversed bool) *job {
	values := list(in, bn254Fr.read)
	domain, onCoset, tasks := fft.NewDomain(uint64(len(values))), fft.OnCoset(), fft.WithNbTasks(threads)
	reverse := fft.BitReverse[fr.Element]
	return nttJob(values, bn254Fr, domain, fft.DIF, onCoset, tasks, reverse, transform, reversed)
}

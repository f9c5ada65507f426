package main

import (
	"github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"
)

var (
	bls12381Fp = codecOf(fp.LittleEndian.Element, fp.LittleEndian.PutElement)
	bls12381Fr = codecOf(fr.LittleEndian.Element, fr.LittleEndian.PutElement)
)

func bls12381G1(in *input) bls12381.G1Affine {
	return bls12381.G1Affine{X: bls12381Fp.read(in), Y: bls12381Fp.read(in)}
}

func bls12381G2(in *input) bls12381.G2Affine {
	var point bls12381.G2Affine
	point.X.A0, point.X.A1 = bls12381Fp.read(in), bls12381Fp.read(in)
	point.Y.A0, point.Y.A1 = bls12381Fp.read(in), bls12381Fp.read(in)
	return point
}

func bls12381MsmG1(in *input) *job {
	return msmJob(list(in, bls12381G1), list(in, bls12381Fr.read), func(sum bls12381.G1Affine) [][]byte {
		return bls12381Fp.parts(sum.X, sum.Y)
	})
}

func bls12381MsmG2(in *input) *job {
	return msmJob(list(in, bls12381G2), list(in, bls12381Fr.read), func(sum bls12381.G2Affine) [][]byte {
		return bls12381Fp.parts(sum.X.A0, sum.X.A1, sum.Y.A0, sum.Y.A1)
	})
}

func bls12381Pairing(in *input) *job {
	return pairingJob(list(in, bls12381G1), list(in, bls12381G2), bls12381.Pair)
}

func bls12381Ntt(in *input, transform string, reversed bool) *job {
	values := list(in, bls12381Fr.read)
	domain, onCoset, tasks := fft.NewDomain(uint64(len(values))), fft.OnCoset(), fft.WithNbTasks(threads)
	reverse := fft.BitReverse[fr.Element]
	return nttJob(values, bls12381Fr, domain, fft.DIF, onCoset, tasks, reverse, transform, reversed)
}

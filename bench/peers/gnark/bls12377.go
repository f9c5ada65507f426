package main

import (
	"github.com/consensys/gnark-crypto/ecc/bls12-377"
	"github.com/consensys/gnark-crypto/ecc/bls12-377/fp"
	"github.com/consensys/gnark-crypto/ecc/bls12-377/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-377/fr/fft"
)

var (
	bls12377Fp = codecOf(fp.LittleEndian.Element, fp.LittleEndian.PutElement)
	bls12377Fr = codecOf(fr.LittleEndian.Element, fr.LittleEndian.PutElement)
)

func bls12377G1(in *input) bls12377.G1Affine {
	return bls12377.G1Affine{X: bls12377Fp.read(in), Y: bls12377Fp.read(in)}
}

func bls12377G2(in *input) bls12377.G2Affine {
	var point bls12377.G2Affine
	point.X.A0, point.X.A1 = bls12377Fp.read(in), bls12377Fp.read(in)
	point.Y.A0, point.Y.A1 = bls12377Fp.read(in), bls12377Fp.read(in)
	return point
}

func bls12377MsmG1(in *input) *job {
	return msmJob(list(in, bls12377G1), list(in, bls12377Fr.read), func(sum bls12377.G1Affine) [][]byte {
		return bls12377Fp.parts(sum.X, sum.Y)
	})
}

func bls12377MsmG2(in *input) *job {
	return msmJob(list(in, bls12377G2), list(in, bls12377Fr.read), func(sum bls12377.G2Affine) [][]byte {
		return bls12377Fp.parts(sum.X.A0, sum.X.A1, sum.Y.A0, sum.Y.A1)
	})
}

func bls12377Pairing(in *input) *job {
	return pairingJob(list(in, bls12377G1), list(in, bls12377G2), bls12377.Pair)
}

func bls12377Ntt(in *input, transform string, reversed bool) *job {
	values := list(in, bls12377Fr.read)
	domain, onCoset, tasks := fft.NewDomain(uint64(len(values))), fft.OnCoset(), fft.WithNbTasks(threads)
	reverse := fft.BitReverse[fr.Element]
	return nttJob(values, bls12377Fr, domain, fft.DIF, onCoset, tasks, reverse, transform, reversed)
}

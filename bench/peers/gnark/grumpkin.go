package main

import (
	"github.com/consensys/gnark-crypto/ecc/grumpkin"
	"github.com/consensys/gnark-crypto/ecc/grumpkin/fp"
	"github.com/consensys/gnark-crypto/ecc/grumpkin/fr"
)

var (
	grumpkinFp = codecOf(fp.LittleEndian.Element, fp.LittleEndian.PutElement)
	grumpkinFr = codecOf(fr.LittleEndian.Element, fr.LittleEndian.PutElement)
)

func grumpkinG1(in *input) grumpkin.G1Affine {
	return grumpkin.G1Affine{X: grumpkinFp.read(in), Y: grumpkinFp.read(in)}
}

func grumpkinMsmG1(in *input) *job {
	return msmJob(list(in, grumpkinG1), list(in, grumpkinFr.read), func(sum grumpkin.G1Affine) [][]byte {
		return grumpkinFp.parts(sum.X, sum.Y)
	})
}

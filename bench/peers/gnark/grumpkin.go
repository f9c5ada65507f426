package main

import (
	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark-crypto/ecc/grumpkin"
	"github.com/consensys/gnark-crypto/ecc/grumpkin/fp"
	"github.com/consensys/gnark-crypto/ecc/grumpkin/fr"
)

func grumpkinFp(in *input) fp.Element {
	element, err := fp.LittleEndian.Element((*[fp.Bytes]byte)(in.take(fp.Bytes)))
	if err != nil {
		panic(err)
	}
	return element
}

func grumpkinFr(in *input) fr.Element {
	element, err := fr.LittleEndian.Element((*[fr.Bytes]byte)(in.take(fr.Bytes)))
	if err != nil {
		panic(err)
	}
	return element
}

func grumpkinFpBytes(element fp.Element) []byte {
	bytes := make([]byte, fp.Bytes)
	fp.LittleEndian.PutElement((*[fp.Bytes]byte)(bytes), element)
	return bytes
}

func grumpkinG1(in *input) grumpkin.G1Affine {
	return grumpkin.G1Affine{X: grumpkinFp(in), Y: grumpkinFp(in)}
}

func grumpkinMsmG1(in *input) *job {
	points, scalars := list(in, grumpkinG1), list(in, grumpkinFr)
	var sum grumpkin.G1Affine
	return &job{
		work: func() error {
			_, err := sum.MultiExp(points, scalars, ecc.MultiExpConfig{NbTasks: msmTasks()})
			return err
		},
		result: func() string {
			return fingerprint(grumpkinFpBytes(sum.X), grumpkinFpBytes(sum.Y))
		},
	}
}

package main

import (
	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fp"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr/fft"
)

func bn254Fp(in *input) fp.Element {
	element, err := fp.LittleEndian.Element((*[fp.Bytes]byte)(in.take(fp.Bytes)))
	if err != nil {
		panic(err)
	}
	return element
}

func bn254Fr(in *input) fr.Element {
	element, err := fr.LittleEndian.Element((*[fr.Bytes]byte)(in.take(fr.Bytes)))
	if err != nil {
		panic(err)
	}
	return element
}

func bn254FpBytes(element fp.Element) []byte {
	bytes := make([]byte, fp.Bytes)
	fp.LittleEndian.PutElement((*[fp.Bytes]byte)(bytes), element)
	return bytes
}

func bn254FrBytes(element fr.Element) []byte {
	bytes := make([]byte, fr.Bytes)
	fr.LittleEndian.PutElement((*[fr.Bytes]byte)(bytes), element)
	return bytes
}

func bn254G1(in *input) bn254.G1Affine {
	return bn254.G1Affine{X: bn254Fp(in), Y: bn254Fp(in)}
}

func bn254MsmG1(in *input) *job {
	points, scalars := list(in, bn254G1), list(in, bn254Fr)
	var sum bn254.G1Affine
	return &job{
		work: func() error {
			_, err := sum.MultiExp(points, scalars, ecc.MultiExpConfig{NbTasks: msmTasks()})
			return err
		},
		result: func() string {
			return fingerprint(bn254FpBytes(sum.X), bn254FpBytes(sum.Y))
		},
	}
}

func bn254G2(in *input) bn254.G2Affine {
	var point bn254.G2Affine
	point.X.A0, point.X.A1 = bn254Fp(in), bn254Fp(in)
	point.Y.A0, point.Y.A1 = bn254Fp(in), bn254Fp(in)
	return point
}

func bn254MsmG2(in *input) *job {
	points, scalars := list(in, bn254G2), list(in, bn254Fr)
	var sum bn254.G2Affine
	return &job{
		work: func() error {
			_, err := sum.MultiExp(points, scalars, ecc.MultiExpConfig{NbTasks: msmTasks()})
			return err
		},
		result: func() string {
			return fingerprint(
				bn254FpBytes(sum.X.A0), bn254FpBytes(sum.X.A1),
				bn254FpBytes(sum.Y.A0), bn254FpBytes(sum.Y.A1),
			)
		},
	}
}

func bn254Pairing(in *input) *job {
	left, right := list(in, bn254G1), list(in, bn254G2)
	var product bn254.GT
	return &job{
		work: func() error {
			var err error
			product, err = bn254.Pair(left, right)
			return err
		},
		result: func() string {
			if product.IsOne() {
				return "one"
			}
			return "not one"
		},
	}
}

func bn254Ntt(in *input, transform string, reversed bool) *job {
	values := list(in, bn254Fr)
	tasks := fft.WithNbTasks(threads)
	domain := fft.NewDomain(uint64(len(values)))
	work, ok := map[string]func([]fr.Element){
		"forward":       func(v []fr.Element) { domain.FFT(v, fft.DIF, tasks) },
		"inverse":       func(v []fr.Element) { domain.FFTInverse(v, fft.DIF, tasks) },
		"coset-forward": func(v []fr.Element) { domain.FFT(v, fft.DIF, fft.OnCoset(), tasks) },
		"coset-inverse": func(v []fr.Element) { domain.FFTInverse(v, fft.DIF, fft.OnCoset(), tasks) },
	}[transform]
	if !ok {
		return nil
	}
	transformed := make([]fr.Element, len(values))
	return &job{
		prepare: func() { copy(transformed, values) },
		work: func() error {
			work(transformed)
			if !reversed {
				fft.BitReverse(transformed)
			}
			return nil
		},
		result: func() string {
			if reversed {
				fft.BitReverse(transformed)
			}
			bytes := make([]byte, 0, len(transformed)*fr.Bytes)
			for _, value := range transformed {
				bytes = append(bytes, bn254FrBytes(value)...)
			}
			return fingerprint(bytes)
		},
	}
}

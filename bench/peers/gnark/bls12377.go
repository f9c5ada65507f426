package main

import (
	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark-crypto/ecc/bls12-377"
	"github.com/consensys/gnark-crypto/ecc/bls12-377/fp"
	"github.com/consensys/gnark-crypto/ecc/bls12-377/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-377/fr/fft"
)

func bls12377Fp(in *input) fp.Element {
	element, err := fp.LittleEndian.Element((*[fp.Bytes]byte)(in.take(fp.Bytes)))
	if err != nil {
		panic(err)
	}
	return element
}

func bls12377Fr(in *input) fr.Element {
	element, err := fr.LittleEndian.Element((*[fr.Bytes]byte)(in.take(fr.Bytes)))
	if err != nil {
		panic(err)
	}
	return element
}

func bls12377FpBytes(element fp.Element) []byte {
	bytes := make([]byte, fp.Bytes)
	fp.LittleEndian.PutElement((*[fp.Bytes]byte)(bytes), element)
	return bytes
}

func bls12377FrBytes(element fr.Element) []byte {
	bytes := make([]byte, fr.Bytes)
	fr.LittleEndian.PutElement((*[fr.Bytes]byte)(bytes), element)
	return bytes
}

func bls12377G1(in *input) bls12377.G1Affine {
	return bls12377.G1Affine{X: bls12377Fp(in), Y: bls12377Fp(in)}
}

func bls12377MsmG1(in *input) *job {
	points, scalars := list(in, bls12377G1), list(in, bls12377Fr)
	var sum bls12377.G1Affine
	return &job{
		work: func() error {
			_, err := sum.MultiExp(points, scalars, ecc.MultiExpConfig{NbTasks: msmTasks()})
			return err
		},
		result: func() string {
			return fingerprint(bls12377FpBytes(sum.X), bls12377FpBytes(sum.Y))
		},
	}
}

func bls12377G2(in *input) bls12377.G2Affine {
	var point bls12377.G2Affine
	point.X.A0, point.X.A1 = bls12377Fp(in), bls12377Fp(in)
	point.Y.A0, point.Y.A1 = bls12377Fp(in), bls12377Fp(in)
	return point
}

func bls12377MsmG2(in *input) *job {
	points, scalars := list(in, bls12377G2), list(in, bls12377Fr)
	var sum bls12377.G2Affine
	return &job{
		work: func() error {
			_, err := sum.MultiExp(points, scalars, ecc.MultiExpConfig{NbTasks: msmTasks()})
			return err
		},
		result: func() string {
			return fingerprint(
				bls12377FpBytes(sum.X.A0), bls12377FpBytes(sum.X.A1),
				bls12377FpBytes(sum.Y.A0), bls12377FpBytes(sum.Y.A1),
			)
		},
	}
}

func bls12377Pairing(in *input) *job {
	left, right := list(in, bls12377G1), list(in, bls12377G2)
	var product bls12377.GT
	return &job{
		work: func() error {
			var err error
			product, err = bls12377.Pair(left, right)
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

func bls12377Ntt(in *input, transform string, reversed bool) *job {
	values := list(in, bls12377Fr)
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
				bytes = append(bytes, bls12377FrBytes(value)...)
			}
			return fingerprint(bytes)
		},
	}
}

package main

import (
	"fmt"

	"github.com/consensys/gnark-crypto/ecc"
)

// The jobs that gnark-crypto's packages, one for each curve, have in common. What a package does not offer by a
// method, such as a point's coordinates, is given by the curve's own file.

// A codec reads and writes elements of one field, canonical and little-endian.
type codec[E any] struct {
	read  func(*input) E
	bytes func(E) []byte
}

// The codec of a field from the two halves of its package's LittleEndian.
func codecOf[A [32]byte | [48]byte, E any](decode func(*A) (E, error), encode func(*A, E)) codec[E] {
	return codec[E]{
		read: func(in *input) E {
			var array A
			for i, value := range in.take(len(array)) {
				array[i] = value
			}
			element, err := decode(&array)
			if err != nil {
				panic(err)
			}
			return element
		},
		bytes: func(element E) []byte {
			var array A
			encode(&array, element)
			bytes := make([]byte, len(array))
			for i := range bytes {
				bytes[i] = array[i]
			}
			return bytes
		},
	}
}

// The parts of a fingerprint: the elements' bytes.
func (field codec[E]) parts(elements ...E) [][]byte {
	parts := make([][]byte, len(elements))
	for i, element := range elements {
		parts[i] = field.bytes(element)
	}
	return parts
}

// A pointer to a point, which can be set to a sum of multiples.
type affine[P, S any] interface {
	*P
	MultiExp([]P, []S, ecc.MultiExpConfig) (*P, error)
}

func msmJob[P, S any, A affine[P, S]](points []P, scalars []S, coordinates func(P) [][]byte) *job {
	var sum P
	return &job{
		work: func() error {
			_, err := A(&sum).MultiExp(points, scalars, ecc.MultiExpConfig{NbTasks: msmTasks()})
			return err
		},
		result: func() string { return fingerprint(coordinates(sum)...) },
	}
}

// A pointer to a pairing's value.
type target[T any] interface {
	*T
	IsOne() bool
}

func pairingJob[P, Q, T any, A target[T]](left []P, right []Q, pair func([]P, []Q) (T, error)) *job {
	var product T
	return &job{
		work: func() error {
			var err error
			product, err = pair(left, right)
			return err
		},
		result: func() string {
			if A(&product).IsOne() {
				return "one"
			}
			return "not one"
		},
	}
}

// A domain of a curve's fft package, whose decimation D and options O are types of their own.
type domain[E, D, O any] interface {
	FFT([]E, D, ...O)
	FFTInverse([]E, D, ...O)
}

// The job of a transform; nil if none has the name.
func nttJob[E, D, O any](
	values []E, field codec[E], domain domain[E, D, O], decimation D, onCoset, tasks O,
	reverse func([]E), transform string, reversed bool,
) *job {
	work, ok := map[string]func([]E){
		"forward":       func(v []E) { domain.FFT(v, decimation, tasks) },
		"inverse":       func(v []E) { domain.FFTInverse(v, decimation, tasks) },
		"coset-forward": func(v []E) { domain.FFT(v, decimation, onCoset, tasks) },
		"coset-inverse": func(v []E) { domain.FFTInverse(v, decimation, onCoset, tasks) },
	}[transform]
	if !ok {
		return nil
	}
	transformed := make([]E, len(values))
	return &job{
		prepare: func() { copy(transformed, values) },
		work: func() error {
			work(transformed)
			if !reversed {
				reverse(transformed)
			}
			return nil
		},
		result: func() string {
			if reversed {
				reverse(transformed)
			}
			return fingerprint(field.parts(transformed...)...)
		},
	}
}

// A proof's points and its public inputs.
type claim[P, S any] struct {
	points P
	inputs []S
}

func verifierJob[P, S any](claims []claim[P, S], verify func(*P, []S) error) *job {
	return &job{
		work: func() error {
			for i := range claims {
				// The inputs may be appended to.
				inputs := append([]S{}, claims[i].inputs...)
				if err := verify(&claims[i].points, inputs); err != nil {
					return err
				}
			}
			return nil
		},
		result: func() string { return fmt.Sprint(len(claims), " are valid") },
	}
}

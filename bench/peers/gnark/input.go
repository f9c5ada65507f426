package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// The input's bytes. Field elements are canonical and little-endian, those of a quadratic extension
// with the constant coefficient first; a point is x and y, zeros for infinity; a list begins with
// its length in 8 bytes, little-endian as well.
type input struct {
	rest []byte
}

func (in *input) take(length int) []byte {
	taken := in.rest[:length]
	in.rest = in.rest[length:]
	return taken
}

func (in *input) length() int {
	return int(binary.LittleEndian.Uint64(in.take(8)))
}

func (in *input) uint32() uint32 {
	return binary.LittleEndian.Uint32(in.take(4))
}

func list[T any](in *input, element func(*input) T) []T {
	elements := make([]T, in.length())
	for i := range elements {
		elements[i] = element(in)
	}
	return elements
}

// The SHA-256 of all parts, in hexadecimal: what results are compared by.
func fingerprint(parts ...[]byte) string {
	hash := sha256.New()
	for _, part := range parts {
		hash.Write(part)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

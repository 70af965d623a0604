// Package vector is the mathematics of embeddings: what is accepted as one, how alike
// two are, and the files of codes that a search of many goes through first. It knows no
// database.
package vector

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// MaxDimension is the longest vector that is accepted: twice what embedding models make.
const MaxDimension = 8192

// Unit returns v with the length 1, so that the cosine of two is their product. A vector
// without direction is an error: no number at all, one that is infinite or none, only zeros.
func Unit(v []float32) ([]float32, error) {
	if len(v) == 0 || len(v) > MaxDimension {
		return nil, fmt.Errorf("the vector has %d dimensions; valid are 1 to %d", len(v), MaxDimension)
	}
	var sum float64
	for i, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return nil, fmt.Errorf("number %d of the vector is %v; valid are finite numbers", i, x)
		}
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return nil, errors.New("the vector is all zeros, which has no direction")
	}
	unit, scale := make([]float32, len(v)), 1/math.Sqrt(sum)
	for i, x := range v {
		unit[i] = float32(float64(x) * scale)
	}
	return unit, nil
}

// Cosine is how alike two unit vectors of one dimension are: 1 for the same direction, 0
// for unrelated ones, -1 for the opposite.
func Cosine(a, b []float32) float64 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(a); i += 4 {
		x, y := a[i:i+4:i+4], b[i:i+4:i+4]
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return float64(s0+s1) + float64(s2+s3)
}

// Encode writes a vector as it is stored.
func Encode(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// Decode reads what Encode has written into v, whose length it must have.
func Decode(v []float32, b []byte) error {
	if len(b) != 4*len(v) {
		return fmt.Errorf("a stored vector has %d bytes; %d dimensions have %d", len(b), len(v), 4*len(v))
	}
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return nil
}

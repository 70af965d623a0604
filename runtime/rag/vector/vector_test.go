package vector

import (
	"math"
	"math/rand/v2"
	"testing"
)

func randomUnit(r *rand.Rand, dimension int) []float32 {
	v := make([]float32, dimension)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	u, err := Unit(v)
	if err != nil {
		panic(err)
	}
	return u
}

func BenchmarkProduct(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	q := NewCode(randomUnit(r, 1536)).Query()
	v := NewCode(randomUnit(r, 1536))
	b.SetBytes(1536)
	for b.Loop() {
		q.product(v.codes)
	}
}

func BenchmarkCosine(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	q, v := randomUnit(r, 1536), randomUnit(r, 1536)
	b.SetBytes(1536)
	for b.Loop() {
		Cosine(q, v)
	}
}

func BenchmarkChecksum(b *testing.B) {
	file := make([]byte, 800_000)
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		checksum(file)
	}
}

func BenchmarkNewCode(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	v := randomUnit(r, 1536)
	b.SetBytes(1536)
	for b.Loop() {
		NewCode(v)
	}
}

func TestProduct(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for dimension := 1; dimension < 200; dimension++ {
		a, b := NewCode(randomUnit(r, dimension)), NewCode(randomUnit(r, dimension))
		var want uint64
		for i := range a.codes {
			want += uint64(a.codes[i]) * uint64(b.codes[i])
		}
		if got := a.Query().product(b.codes); got != want {
			t.Fatalf("%d dimensions: %d, want %d", dimension, got, want)
		}
	}
	_ = math.Pi
}

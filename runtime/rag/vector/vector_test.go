package vector

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
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

func TestUnit(t *testing.T) {
	t.Parallel()
	for name, v := range map[string][]float32{
		"nothing": {}, "NaN": {1, float32(math.NaN())}, "infinity": {float32(math.Inf(1)), 1}, "zeros": {0, 0}, "minus zero": {float32(math.Copysign(0, -1))},
		"too many": make([]float32, MaxDimension+1),
	} {
		if u, err := Unit(v); err == nil {
			t.Errorf("%s is %v", name, u)
		}
	}
	for name, v := range map[string][]float32{
		"small": {1e-45, 0}, "large": {math.MaxFloat32, -math.MaxFloat32}, "both": {math.MaxFloat32, 1e-45}, "one": {-3},
	} {
		u, err := Unit(v)
		if err != nil || math.Abs(Cosine(u, u)-1) > 1e-6 {
			t.Errorf("%s is %v of length %v, %v", name, u, Cosine(u, u), err)
		}
	}
}

func TestEncode(t *testing.T) {
	t.Parallel()
	v := randomUnit(rand.New(rand.NewPCG(1, 2)), 7)
	got := make([]float32, 7)
	if err := Decode(got, Encode(v)); err != nil || !slices.Equal(got, v) {
		t.Errorf("%v, want %v, %v", got, v, err)
	}
	if err := Decode(got, Encode(v)[1:]); err == nil {
		t.Error("27 bytes are 7 dimensions")
	}
}

func TestProduct(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	extremes := []byte{zero - reach, zero + reach}
	for dimension := 1; dimension < 200; dimension++ {
		a, b := NewCode(randomUnit(r, dimension)), NewCode(randomUnit(r, dimension))
		if dimension%3 == 0 { // the largest sums there are
			for i := range a.codes {
				a.codes[i], b.codes[i] = extremes[1], extremes[(i/8+dimension)%2]
			}
		}
		var want uint64
		for i := range a.codes {
			want += uint64(a.codes[i]) * uint64(b.codes[i])
		}
		if got := a.Query().product(b.codes); got != want {
			t.Fatalf("%d dimensions: %d, want %d", dimension, got, want)
		}
	}
}

// drawUnits draws two vectors: of numbers that are alike, of a few that are larger than the
// others, and nearly the same ones.
func drawUnits(r *rapid.T) (a, b []float32) {
	dimension := rapid.SampledFrom([]int{1, 2, 7, 8, 33, 100, 384, 1536}).Draw(r, "dimension")
	source := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1))
	peaks, near := rapid.IntRange(0, 3).Draw(r, "peaks"), rapid.SampledFrom([]float64{0, 0.01, 1}).Draw(r, "near")
	a, b = make([]float32, dimension), make([]float32, dimension)
	for i := range a {
		a[i] = float32(source.NormFloat64())
		b[i] = float32(source.NormFloat64())
		if near > 0 {
			b[i] = a[i] + b[i]*float32(near)
		}
	}
	for range peaks {
		i := source.IntN(dimension)
		a[i] += 50
		b[i] += float32(50 * source.NormFloat64())
	}
	ua, errA := Unit(a)
	ub, errB := Unit(b)
	if errA != nil || errB != nil {
		r.Skip("all zeros")
	}
	return ua, ub
}

// No cosine is above its bound, and the bound is near enough to be of use.
func TestBound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		a, b := drawUnits(r)
		query, code := NewCode(a).Query(), NewCode(b)
		bound, cosine := query.bound(code.codes, code.step, code.sum, code.err), Cosine(a, b)
		worst := code.err + query.err*(1+code.err)
		if cosine > bound || bound > cosine+2*worst+3*slack {
			r.Fatalf("the cosine %v has the bound %v; rounding is %v", cosine, bound, worst)
		}
		if likely := 2*deviations*worst/math.Sqrt(float64(len(a))) + 3*slack; bound > cosine+likely {
			r.Fatalf("the cosine %v has the bound %v, more than %v away", cosine, bound, likely)
		}
	})
}

func TestTop(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		bounds := rapid.SliceOf(rapid.Float64Range(-1, 1)).Draw(r, "bounds")
		most := rapid.IntRange(0, 10).Draw(r, "most")
		tops := []*Top{NewTop(most), NewTop(most)}
		for i, b := range bounds {
			tops[i%2].Add(Bounded{Seq: int64(i), Bound: b})
		}
		tops[0].Merge(tops[1])
		slices.SortFunc(bounds, func(a, b float64) int { return cmp.Compare(b, a) })
		got := tops[0].Sorted()
		if len(got) != min(most, len(bounds)) {
			r.Fatalf("%d of %d kept, want %d", len(got), len(bounds), most)
		}
		for i, b := range got {
			if b.Bound != bounds[i] {
				r.Fatalf("%d is %v, want %v", i, b.Bound, bounds[i])
			}
		}
		rest := math.Inf(-1)
		if len(bounds) > most {
			rest = bounds[most]
		}
		if tops[0].Rest() != rest {
			r.Fatalf("the rest is at most %v, want %v", tops[0].Rest(), rest)
		}
	})
}

// A NaN can stand anywhere, and is compared.
func TestTopOfNaN(t *testing.T) {
	t.Parallel()
	top := NewTop(1)
	top.Add(Bounded{Seq: 1, Bound: 0.9})
	top.Add(Bounded{Seq: 2, Bound: math.NaN()})
	if got := top.Sorted(); got[0].Seq != 2 || top.Rest() != 0.9 {
		t.Errorf("%v, rest %v", got, top.Rest())
	}
}

func BenchmarkProduct(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	q, v := NewCode(randomUnit(r, 1536)).Query(), NewCode(randomUnit(r, 1536))
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

func BenchmarkNewCode(b *testing.B) {
	v := randomUnit(rand.New(rand.NewPCG(1, 2)), 1536)
	b.SetBytes(1536)
	for b.Loop() {
		NewCode(v)
	}
}

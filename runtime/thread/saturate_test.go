package thread_test

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// counts are numbers of every size, those at the ends often.
func counts() *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Int64(), rapid.Int64Range(0, 1e6), rapid.SampledFrom([]int64{
		0, -1, 1, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1, 9e15, 1844674407370955162,
	}))
}

func positive(n int64) *big.Int { return big.NewInt(max(0, n)) }

// capped is a number as an int64 that stops at most.
func capped(n *big.Int, most int64) int64 {
	if n.Cmp(big.NewInt(most)) > 0 {
		return most
	}
	return n.Int64()
}

// TestSaturate: sums and products are what they are without bounds, up to the
// largest int64, and never wrap.
func TestSaturate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(counts(), 0, 6).Draw(t, "counts")
		sum := new(big.Int)
		for _, n := range list {
			sum.Add(sum, positive(n))
		}
		if got, want := thread.Sum(list...), capped(sum, math.MaxInt64); got != want {
			t.Fatalf("the sum of %v is %d, want %d", list, got, want)
		}
		a, b := counts().Draw(t, "a"), counts().Draw(t, "b")
		product := new(big.Int).Mul(positive(a), positive(b))
		if got, want := thread.Product(a, b), capped(product, math.MaxInt64); got != want {
			t.Fatalf("%d * %d is %d, want %d", a, b, got, want)
		}
		both := new(big.Int).Add(positive(a), positive(b))
		if got, want := int64(thread.Micros(a).Plus(thread.Micros(b))), capped(both, int64(thread.MaxMicros)); got != want {
			t.Fatalf("%d plus %d is %d, want %d", a, b, got, want)
		}
	})
}

// TestCostSaturates: no cost, however often more is added, becomes smaller or
// negative, and its spend is always one that JSON can hold.
func TestCostSaturates(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var sum thread.Cost
		for range rapid.IntRange(1, 8).Draw(t, "calls") {
			more := thread.Cost{
				InputTokens: counts().Draw(t, "input"), OutputTokens: counts().Draw(t, "output"),
				CacheReadTokens: counts().Draw(t, "read"), CacheWriteTokens: counts().Draw(t, "write"),
				Spend: thread.Micros(counts().Draw(t, "spend")),
			}
			next := sum.Add(more)
			if next.Tokens() < sum.Tokens() || next.Spend < sum.Spend || next.Tokens() > thread.MaxTokens || next.Spend > thread.MaxMicros {
				t.Fatalf("%+v and %+v are %+v", sum, more, next)
			}
			sum = next
		}
		if _, err := thread.Dollars(sum.Spend.Dollars()); err != nil {
			t.Fatal(err)
		}
	})
}

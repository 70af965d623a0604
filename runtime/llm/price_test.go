package llm

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestCost: a price times a usage is rounded up to the micro-dollar, stops at the
// largest amount, and never wraps.
func TestCost(t *testing.T) {
	t.Parallel()
	number := rapid.OneOf(rapid.Int64(), rapid.Int64Range(0, 1e7), rapid.SampledFrom([]int64{0, -1, math.MaxInt64, math.MinInt64, 9e15, 1844674407370955162}))
	rapid.Check(t, func(t *rapid.T) {
		p := Price{Input: number.Draw(t, "in"), Output: number.Draw(t, "out"), CacheRead: number.Draw(t, "read"), CacheWrite: number.Draw(t, "write")}
		u := Usage{InputTokens: number.Draw(t, "i"), OutputTokens: number.Draw(t, "o"), CacheReadTokens: number.Draw(t, "r"), CacheWriteTokens: number.Draw(t, "w")}
		sum := new(big.Int)
		for _, part := range [][2]int64{
			{p.Input, u.InputTokens}, {p.Output, u.OutputTokens}, {p.CacheRead, u.CacheReadTokens}, {p.CacheWrite, u.CacheWriteTokens},
		} {
			sum.Add(sum, new(big.Int).Mul(big.NewInt(max(0, part[0])), big.NewInt(max(0, part[1]))))
		}
		sum.Add(sum, big.NewInt(tokensPerPrice-1))
		sum.Div(sum, big.NewInt(tokensPerPrice))
		want := int64(thread.MaxMicros)
		// An int64 of millionths stops below the largest amount there is.
		if most := int64(math.MaxInt64/tokensPerPrice + 1); sum.Cmp(big.NewInt(most)) >= 0 {
			want = most
		} else if sum.Cmp(big.NewInt(want)) < 0 {
			want = sum.Int64()
		}
		if got := int64(p.Cost(u)); got != want {
			t.Fatalf("%+v costs %d, want %d", u, got, want)
		}
	})
}

// TestCostByLength: a call is charged the price of its length, whatever of it was cached.
func TestCostByLength(t *testing.T) {
	t.Parallel()
	price := Price{Input: 4e6, Output: 18e6, CacheRead: 400_000, CacheWrite: 4e6, UpTo: 200, Short: Rates{Input: 2e6, Output: 12e6, CacheRead: 200_000, CacheWrite: 2e6}}
	for _, c := range []struct {
		price Price
		usage Usage
		want  thread.Micros
	}{
		{price, Usage{InputTokens: 200, OutputTokens: 1000}, 400 + 12_000},
		{price, Usage{InputTokens: 201, OutputTokens: 1}, 804 + 18},
		{price, Usage{InputTokens: 10, CacheReadTokens: 190}, 20 + 38},
		{price, Usage{InputTokens: 10, CacheReadTokens: 190, CacheWriteTokens: 1}, 40 + 76 + 4},
		{price, Usage{OutputTokens: 1}, 12},
		{Price{Input: 4e6, Output: 18e6}, Usage{OutputTokens: 1}, 18},
	} {
		if got := c.price.Cost(c.usage); got != c.want {
			t.Errorf("%+v costs %d, want %d", c.usage, got, c.want)
		}
	}
}

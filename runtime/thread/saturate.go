package thread

import (
	"math"
	"math/bits"
)

// MaxMicros is the largest amount there is, a billion dollars, and MaxTokens the
// largest count of tokens. Both are exact in a JSON number, and thousands of them
// can be added before an int64 overflows, as SQL does when it sums up a tree.
const (
	MaxMicros Micros = maxDollars * MicrosPerDollar
	MaxTokens int64  = int64(MaxMicros)
)

// Sum adds counts and stops at the largest int64. Negative counts, which only a
// broken report can hold, count as zero.
func Sum(counts ...int64) int64 {
	var total int64
	for _, n := range counts {
		total += min(max(0, n), math.MaxInt64-total)
	}
	return total
}

// Product multiplies two counts and stops at the largest int64. A negative count
// counts as zero.
func Product(a, b int64) int64 {
	high, low := bits.Mul64(uint64(max(0, a)), uint64(max(0, b)))
	if high > 0 || low > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(low)
}

// Plus adds an amount and stops at [MaxMicros]. Money is only ever added: a
// negative amount counts as zero.
func (m Micros) Plus(more Micros) Micros {
	return min(MaxMicros, Micros(Sum(int64(m), int64(more))))
}

// addTokens adds counts of tokens and stops at [MaxTokens].
func addTokens(counts ...int64) int64 { return min(MaxTokens, Sum(counts...)) }

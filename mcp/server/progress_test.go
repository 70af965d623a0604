package server

import (
	"encoding/json"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Progress grows and can be written, whatever a handler reports.
func TestProgressGrows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var last *float64
		values := rapid.SliceOf(rapid.OneOf(
			rapid.Float64Range(-10, 1e12),
			rapid.SampledFrom([]float64{0, 1, 1, math.NaN(), math.Inf(1), math.Inf(-1)}),
		)).Draw(t, "values")
		for _, v := range values {
			next := growing(last, v)
			if _, err := json.Marshal(*next); err != nil {
				t.Fatalf("%v after %v: %v", *next, last, err)
			}
			if last != nil && *next <= *last {
				t.Fatalf("%v after %v", *next, *last)
			}
			last = next
		}
	})
}

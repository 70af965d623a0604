package wire

import (
	"math"
	"strconv"
	"strings"
)

// Count reads a number of tokens as a provider wrote it in JSON. Parts of a token
// are rounded up, and a number beyond an int64 is the largest one, so that nothing
// wraps; the bill holds it against what a call can use. There is no count
// (ok is false) in what is negative or no number. Nothing, and null, is not given.
func Count(raw string) (n int64, given, ok bool) {
	raw = strings.Trim(raw, `" `)
	if raw == "" || raw == "null" {
		return 0, false, true
	}
	if n, err := strconv.ParseInt(raw, 10, 64); err == nil {
		return max(0, n), true, n >= 0
	}
	f, err := strconv.ParseFloat(raw, 64)
	switch {
	case math.IsNaN(f), err != nil && !math.IsInf(f, 1), f < 0:
		return 0, true, false
	case f >= math.MaxInt64:
		return math.MaxInt64, true, true
	}
	return int64(math.Ceil(f)), true, true
}

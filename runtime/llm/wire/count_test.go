package wire

import (
	"math"
	"testing"
)

func TestCount(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]struct {
		n         int64
		given, ok bool
	}{
		"":                      {0, false, true},
		"null":                  {0, false, true},
		"0":                     {0, true, true},
		"17":                    {17, true, true},
		`"17"`:                  {17, true, true},
		"1.2":                   {2, true, true},
		"1e3":                   {1000, true, true},
		"9223372036854775807":   {math.MaxInt64, true, true},
		"9223372036854775808":   {math.MaxInt64, true, true},
		"1e300":                 {math.MaxInt64, true, true},
		"1e999":                 {math.MaxInt64, true, true},
		"-1":                    {0, true, false},
		"-0.5":                  {0, true, false},
		"-9223372036854775809":  {0, true, false},
		"-1e999":                {0, true, false},
		"NaN":                   {0, true, false},
		"true":                  {0, true, false},
		"[1]":                   {0, true, false},
		`{"n":1}`:               {0, true, false},
		`"many"`:                {0, true, false},
		"18446744073709551616e": {0, true, false},
	} {
		if n, given, ok := Count(raw); n != want.n || given != want.given || ok != want.ok {
			t.Errorf("Count(%s) = %d, %v, %v", raw, n, given, ok)
		}
	}
}

func FuzzCount(f *testing.F) {
	for _, raw := range []string{"9e15", "-1", "1.5", "null", "1844674407370955162", `"7"`, "0x10", "1_000", "Infinity"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if n, _, ok := Count(raw); n < 0 || !ok && n != 0 {
			t.Errorf("Count(%q) = %d, %v", raw, n, ok)
		}
	})
}

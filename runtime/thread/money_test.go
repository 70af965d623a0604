package thread_test

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestMicrosKeepTheirValue: an amount in JSON and back is the same amount, to the
// micro-dollar and up to the largest there is.
func TestMicrosKeepTheirValue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := thread.Micros(rapid.Int64Range(0, 1e15).Draw(t, "micros"))
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var back thread.Micros
		if err := json.Unmarshal(text, &back); err != nil || back != m {
			t.Fatalf("%d is %s, and that is %d (%v)", m, text, back, err)
		}
		if again, err := thread.Dollars(m.Dollars()); err != nil || again != m {
			t.Fatalf("%d dollars are %d (%v)", m, again, err)
		}
	})
}

// TestSumsOfFloats: a caller that adds dollars as floats before giving them
// here gets the amount that was meant.
func TestSumsOfFloats(t *testing.T) {
	t.Parallel()
	tenth, fifth := 0.1, 0.2
	if got, err := thread.Dollars(tenth + fifth); err != nil || got != 300_000 {
		t.Errorf("0.1 + 0.2 is %d micro-dollars, %v", got, err)
	}
	rapid.Check(t, func(t *rapid.T) {
		var dollars float64
		var micros thread.Micros
		for _, m := range rapid.SliceOfN(rapid.Int64Range(0, 1e10), 0, 100).Draw(t, "amounts") {
			dollars += thread.Micros(m).Dollars()
			micros += thread.Micros(m)
		}
		if got, err := thread.Dollars(dollars); err != nil || got != micros {
			t.Fatalf("%v dollars are %d, want %d (%v)", dollars, got, micros, err)
		}
	})
}

package expr_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/expr"
)

func TestCouldHold(t *testing.T) {
	t.Parallel()
	data := map[string]any{"event": map[string]any{"name": "error"}}
	open := func(path string) bool { return strings.HasPrefix(path, "cost.") || path == "code" }
	for when, want := range map[string]bool{
		`event.name == "error"`:                    true,
		`event.name == "limit"`:                    false,
		`event.name != "limit"`:                    true,
		`not event.name == "error"`:                false,
		`cost.spend > 1`:                           true,
		`not cost.spend > 1`:                       true,
		`cost.spend > missing`:                     false,
		`missing > 1`:                              false,
		`not missing > 1`:                          true,
		`missing exists`:                           false,
		`code exists`:                              true,
		`cost.spend > 1 and event.name == "limit"`: false,
		`cost.spend > 1 or event.name == "limit"`:  true,
		`event.name in ["error", "limit"] and not code == "x"`:        true,
		`(event.name == "limit" or missing == 1) and cost.spend > 1`:  false,
		`not (event.name == "error" or cost.spend > 1)`:               false,
		`not (event.name == "error" and cost.spend > 1) and code > 1`: true,
	} {
		c, err := expr.ParseWhen(when)
		if err != nil {
			t.Errorf("%s: %v", when, err)
			continue
		}
		if got := c.CouldHold(data, open); got != want {
			t.Errorf("%s: %t", when, got)
		}
	}
	if !(expr.Condition{}).CouldHold(nil, open) {
		t.Error("no condition could not hold")
	}
}

// A condition that is true of some data could hold before they were known.
func TestCouldHoldMissesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		leaf := rapid.SampledFrom([]string{`a == 1`, `a > b`, `b exists`, `not b exists`, `c == "x"`, `c != "x"`, `not a < 1`})
		when := "(" + leaf.Draw(t, "one") + rapid.SampledFrom([]string{" and ", " or ", " and not "}).Draw(t, "by") + leaf.Draw(t, "two") + ")"
		c, err := expr.ParseWhen(when)
		if err != nil {
			t.Fatal(err)
		}
		known := map[string]any{"c": rapid.SampledFrom([]any{"x", "y", int64(1)}).Draw(t, "c")}
		data := map[string]any{"c": known["c"]}
		for _, name := range []string{"a", "b"} {
			if rapid.Bool().Draw(t, name+" is there") {
				data[name] = int64(rapid.IntRange(0, 2).Draw(t, name))
			}
		}
		open := func(path string) bool { return path == "a" || path == "b" }
		if c.Eval(data) && !c.CouldHold(known, open) {
			t.Fatalf("%s is true of %v, and could not hold", when, data)
		}
	})
}

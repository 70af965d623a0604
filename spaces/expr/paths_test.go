package expr_test

import (
	"reflect"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/expr"
)

func TestPaths(t *testing.T) {
	t.Parallel()
	for when, want := range map[string][]string{
		`a.b == 1`: {"a.b"},
		`cost.spend > limits.spend * 0.8 and not (x exists or y[0] in ["c.d"])`: {"cost.spend", "limits.spend", "x", "y.0"},
	} {
		c, err := expr.ParseWhen(when)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Paths(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q", when, got)
		}
	}
	if got := (expr.Condition{}).Paths(); got != nil {
		t.Errorf("of no condition: %q", got)
	}
}

func TestTemplatePaths(t *testing.T) {
	t.Parallel()
	got := expr.Templates(map[string]any{
		"b": []any{"x ${a.b || c} ${d}", 3}, "a": "${e[1].f}", "${key}": map[string]any{"z": "${HOME} {input:a} ${g}"},
	})
	want := [][]string{{"g"}, {"e.1.f"}, {"a.b", "c"}, {"d"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
}

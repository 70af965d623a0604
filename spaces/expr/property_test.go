package expr_test

import (
	"reflect"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/expr"
)

// names are few, so that conditions meet the data they are about.
var names = rapid.SampledFrom([]string{"a", "b", "c", "0", "1"})

func scalars() *rapid.Generator[any] {
	return rapid.OneOf(
		rapid.Just[any](nil),
		rapid.Custom(func(t *rapid.T) any { return rapid.Bool().Draw(t, "bool") }),
		rapid.Custom(func(t *rapid.T) any { return rapid.Int64Range(-2, 2).Draw(t, "int") }),
		rapid.Custom(func(t *rapid.T) any { return rapid.SampledFrom([]float64{-1, 0, 0.5, 1, 1e300}).Draw(t, "float") }),
		rapid.Custom(func(t *rapid.T) any { return rapid.SampledFrom([]string{"", "a", "ab", "1", "${a}"}).Draw(t, "text") }),
	)
}

// values draws data of JSON types, nested up to depth.
func values(depth int) *rapid.Generator[any] {
	if depth == 0 {
		return scalars()
	}
	return rapid.OneOf(
		scalars(),
		rapid.Custom(func(t *rapid.T) any { return rapid.SliceOfN(values(depth-1), 0, 3).Draw(t, "list") }),
		rapid.Custom(func(t *rapid.T) any { return rapid.MapOfN(names, values(depth-1), 0, 3).Draw(t, "map") }),
	)
}

// conditions draws decoded conditions, most of them valid.
func conditions(depth int) *rapid.Generator[any] {
	one := rapid.Custom(func(t *rapid.T) any {
		c := map[string]any{
			"path": strings.Join(append([]string{rapid.SampledFrom([]string{"a", "b"}).Draw(t, "root")}, rapid.SliceOfN(names, 0, 2).Draw(t, "path")...), "."),
			"op":   rapid.SampledFrom(append(expr.Ops(), "other")).Draw(t, "op"),
		}
		if rapid.IntRange(0, 9).Draw(t, "with value") > 0 {
			c["value"] = values(1).Draw(t, "value")
		}
		return c
	})
	if depth == 0 {
		return one
	}
	return rapid.OneOf(one, rapid.Custom(func(t *rapid.T) any {
		combine := rapid.SampledFrom([]string{"any", "all", "not"}).Draw(t, "combine")
		if combine == "not" {
			return map[string]any{combine: conditions(depth-1).Draw(t, "part")}
		}
		return map[string]any{combine: rapid.SliceOfN(conditions(depth-1), 1, 3).Draw(t, "parts")}
	}))
}

// valid draws a condition that parses, decoded and parsed.
func valid(t *rapid.T) (any, expr.Condition) {
	raw := conditions(2).Draw(t, "condition")
	c, err := expr.ParseCondition(raw)
	if err != nil {
		t.Skip("no condition")
	}
	return raw, c
}

func TestEvalNeverPanics(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		_, c := valid(t)
		data := values(3).Draw(t, "data")
		if holds, why := c.Eval(data), c.Why(data); holds != (why == "") {
			t.Fatalf("%s is %t because %q", c, holds, why)
		}
	})
}

func TestDeMorgan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var parts, negated []any
		for range rapid.IntRange(1, 3).Draw(t, "n") {
			raw, _ := valid(t)
			parts = append(parts, raw)
			negated = append(negated, map[string]any{"not": raw})
		}
		data := values(3).Draw(t, "data")
		same := func(a, b any) {
			if x, y := eval(t, a, data), eval(t, b, data); x != y {
				t.Fatalf("%v is %t, %v is %t", a, x, b, y)
			}
		}
		same(map[string]any{"not": map[string]any{"any": parts}}, map[string]any{"all": negated})
		same(map[string]any{"not": map[string]any{"all": parts}}, map[string]any{"any": negated})
		same(parts[0], map[string]any{"not": negated[0]})
	})
}

func eval(t *rapid.T, raw, data any) bool {
	c, err := expr.ParseCondition(raw)
	if err != nil {
		t.Fatal(err)
	}
	return c.Eval(data)
}

// TestShortFormKeepsMeaning writes conditions as text and reads them again.
// Maps as values have no short form.
func TestShortFormKeepsMeaning(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		_, c := valid(t)
		again, err := expr.ParseWhen(c.String())
		if err != nil {
			if strings.Contains(c.String(), "{") {
				t.Skip("a map")
			}
			t.Fatalf("%s: %v", c, err)
		}
		if data := values(3).Draw(t, "data"); c.Eval(data) != again.Eval(data) {
			t.Fatalf("%s is %t, read again as %s it is not", c, c.Eval(data), again)
		}
	})
}

func TestTemplateProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := values(2).Draw(t, "value")
		data := map[string]any{"a": value}
		if whole, missing := expr.ParseTemplate("${a}").Expand(data); !reflect.DeepEqual(whole, value) || missing != nil {
			t.Fatalf("a template of its own became %#v, want %#v", whole, value)
		}
		text := rapid.StringMatching(`[a-z${} .|]*`).Draw(t, "text")
		if !strings.Contains(text, "${") {
			if got, missing := expr.ParseTemplate(text).Expand(data); got != text || missing != nil {
				t.Fatalf("%q became %q, missing %q", text, got, missing)
			}
		}
		// A value that was put in is not looked at again, whatever stands around it.
		secret := map[string]any{"a": "${b}", "b": "SECRET"}
		if got, _ := expr.ExpandText(strings.ReplaceAll(text, "b", ""), secret); strings.Contains(got, "SECRET") {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

func FuzzParseWhen(f *testing.F) {
	for _, seed := range []string{
		`cost.spend > limits.spend * 0.8 and event.name == "after_step"`,
		`not (a in ["x", 1, null] || b[0].c regex '^\d+$')`, `!a exists`, `a == "`, `((`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := expr.ParseWhen(text)
		if err != nil {
			return
		}
		again, err := expr.ParseWhen(c.String())
		if err != nil {
			t.Fatalf("%q was written as %q: %v", text, c, err)
		}
		if again.String() != c.String() || again.Eval(data()) != c.Eval(data()) {
			t.Fatalf("%q was written as %q and read as %q", text, c, again)
		}
	})
}

func FuzzParseTemplate(f *testing.F) {
	for _, seed := range []string{"${cost.turns}", "a ${none || directive} ${HOME}", "${", "${a.${b}}", "$${a}}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, missing := expr.ExpandText(text, data())
		if !strings.Contains(text, "${") && (got != text || missing != nil) {
			t.Fatalf("%q became %q", text, got)
		}
		for _, m := range missing {
			if !strings.Contains(text, m) {
				t.Fatalf("%q is missing, which %q does not name", m, text)
			}
		}
	})
}

func FuzzParseCondition(f *testing.F) {
	for _, seed := range []string{
		`{path: cost.turns, op: gte, value: 3}`, `{any: [{not: {path: a, op: exists}}, {all: []}]}`,
		`{path: a, op: regex, value: "("}`, `[1`, `~`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var v any
		if yaml.Unmarshal([]byte(text), &v) != nil {
			return
		}
		c, err := expr.ParseCondition(v)
		if err == nil && c.Eval(data()) != (c.Why(data()) == "") {
			t.Fatalf("%s: %t, %q", c, c.Eval(data()), c.Why(data()))
		}
	})
}

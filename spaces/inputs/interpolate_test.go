package inputs_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/inputs"
)

func TestInterpolate(t *testing.T) {
	t.Parallel()
	given := map[string]any{
		"a": "A", "empty": "", "n": int64(3), "f": 2.5, "whole": 2.0, "b": true, "nil": nil,
		"l": []any{"x", int64(1)}, "m": map[string]any{"k": "<v> & w"}, "with-dash.dot_1": "D",
		"sly": "{input:a} {env:HOME} {input:a?}",
	}
	env := map[string]string{"PROJECT_PATH": "/p", "EMPTY": ""}
	tests := []struct{ text, want string }{
		{"", ""},
		{"nothing here", "nothing here"},
		{"{input:a}", "A"},
		{"<{input:a}{input:a}>", "<AA>"},
		{"{input:missing}", "{input:missing}"},
		{"[{input:missing?}]", "[]"},
		{"{input:a?}", "A"},
		{"{input:missing:a default: yes}", "a default: yes"},
		{"{input:missing|a default}", "a default"},
		{"{input:missing:}{input:missing|}", ""},
		{"{input:a:default}{input:a|default}", "AA"},
		{"[{input:empty:default}]", "[]"},
		{"{input:nil:default}{input:nil?}{input:nil}", "default{input:nil}"},
		{"{input:n} {input:f} {input:whole} {input:b}", "3 2.5 2 true"},
		{"{input:l} {input:m}", `["x",1] {"k":"<v> & w"}`},
		{"{input:with-dash.dot_1}", "D"},
		{"{env:PROJECT_PATH}/x[{env:EMPTY}]", "/p/x[]"},
		{"{env:HOME} {env:project_path}", "{env:HOME} {env:project_path}"},
		{"{input:sly}", "{input:a} {env:HOME} {input:a?}"},
		{"{input:missing:{input:a}}", "{input:missing:A}"},
		{"{input:}{input: a}{input:a b}{input:a", "{input:}{input: a}{input:a b}{input:a"},
		{"{{input:a}} ${input:a} {Input:a}", "{A} $A {Input:a}"},
		{"{input:missing:two\nlines}", "two\nlines"},
		{"{input:a??}", "{input:a??}"},
	}
	for _, tt := range tests {
		if got := inputs.Interpolate(tt.text, given, env); got != tt.want {
			t.Errorf("Interpolate(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

// A value comes out as it is, whatever it holds: placeholders in values are text.
func TestInterpolateNeverRescans(t *testing.T) {
	t.Parallel()
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{"{input:k0}", "{input:k1?}", "{input:none:x}", "{env:E}", "{input:", "k0}", "{", "}", ":", "?"}),
		rapid.String())
	text := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOf(piece).Draw(t, "pieces"), "") })
	// Between placeholders stands text without braces, so that none is made by accident.
	plain := rapid.StringMatching(`[a-z:?|$ ]*`)
	rapid.Check(t, func(t *rapid.T) {
		values := map[string]any{}
		env := map[string]string{"E": text.Draw(t, "env")}
		var template, want strings.Builder
		for i, value := range rapid.SliceOf(text).Draw(t, "values") {
			key := fmt.Sprintf("k%d", i)
			values[key] = value
			between := plain.Draw(t, "between")
			form := rapid.SampledFrom([]string{"", "?", ":d", "|d"}).Draw(t, "form")
			template.WriteString("{input:" + key + form + "}" + between + "{env:E}")
			want.WriteString(value + between + env["E"])
		}
		if got := inputs.Interpolate(template.String(), values, env); got != want.String() {
			t.Fatalf("Interpolate(%q) = %q, want %q", template.String(), got, want.String())
		}
	})
}

func FuzzInterpolate(f *testing.F) {
	for _, text := range []string{"{input:k}", "{input:k?}{env:E}", "{input:x:{input:k}}", "{{input:k}|d}", "{input:k:\xff}"} {
		f.Add(text, "v{input:k}")
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		if got := inputs.Interpolate(text, nil, nil); !strings.Contains(text, "{input:") && got != text {
			t.Errorf("without a placeholder %q became %q", text, got)
		}
		// A value is put in as often as its placeholder stands there, and as it is.
		const marker = "\x00" // stands nowhere in a placeholder
		if strings.Contains(text, marker) {
			return
		}
		marked := inputs.Interpolate(text, map[string]any{"k": marker}, nil)
		got := inputs.Interpolate(text, map[string]any{"k": value}, nil)
		if want := strings.ReplaceAll(marked, marker, value); got != want {
			t.Errorf("Interpolate(%q) with %q = %q, want %q", text, value, got, want)
		}
	})
}

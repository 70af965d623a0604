package item_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

func TestParseValue(t *testing.T) {
	t.Parallel()
	const bad = "\x00bad" // stands for an error
	tests := []struct {
		typ, text string
		want      any
	}{
		{"string", " as it is ", " as it is "},
		{"string", "", ""},
		{"integer", " 42 ", int64(42)},
		{"integer", "-7", int64(-7)},
		{"integer", "3.5", bad},
		{"integer", "9223372036854775808", bad},
		{"integer", "", bad},
		{"number", "0.5", 0.5},
		{"number", "3", 3.0},
		{"number", "NaN", bad},
		{"number", "Inf", bad},
		{"number", "1e999", bad},
		{"boolean", "True", true},
		{"boolean", "false", false},
		{"boolean", "yes", bad},
		{"array", `[1, 2.5, "x", null]`, []any{int64(1), 2.5, "x", nil}},
		{"array", `{"a": 1}`, bad},
		{"array", `[1] [2]`, bad},
		{"array", `[1e999]`, bad},
		{"array", `null`, bad},
		{"object", `{"a": [3.0, 9007199254740993]}`, map[string]any{"a": []any{int64(3), int64(9007199254740993)}}},
		{"object", `[]`, bad},
		{"object", `{`, bad},
		{"date", "today", bad},
	}
	for _, tt := range tests {
		got, err := item.ParseValue(tt.typ, tt.text)
		if tt.want == bad {
			if err == nil {
				t.Errorf("ParseValue(%s, %q) = %#v, want an error", tt.typ, tt.text, got)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("ParseValue(%s, %q) = %#v, %v, want %#v", tt.typ, tt.text, got, err, tt.want)
		}
	}
}

func TestParseType(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"string": "string", "Integer": "integer", "NUMBER": "number", "boolean": "boolean", "array": "array", "object": "object",
		"str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object",
	}
	for s, typ := range want {
		if got, err := item.ParseType(s); err != nil || got != typ {
			t.Errorf("ParseType(%q) = %q, %v, want %q", s, got, err, typ)
		}
	}
	if got, err := item.ParseType(" bool "); err != nil || got != "boolean" {
		t.Errorf("ParseType with space around: %q, %v", got, err)
	}
	for _, s := range []string{"", "date", "strings"} {
		if got, err := item.ParseType(s); err == nil {
			t.Errorf("ParseType(%q) = %q, want an error", s, got)
		}
	}
}

func TestPlainNumbersKeepsWhatIsExact(t *testing.T) {
	t.Parallel()
	tests := map[string]any{
		"3":                   int64(3),
		"3.0":                 int64(3),
		"3e2":                 int64(300),
		"9007199254740993":    int64(9007199254740993),
		"9223372036854775808": 9223372036854775808.0,
		"0.1":                 0.1,
	}
	for text, want := range tests {
		if got, err := item.PlainNumbers(json.Number(text)); err != nil || got != want {
			t.Errorf("PlainNumbers(%s) = %#v, %v, want %#v", text, got, err, want)
		}
	}
	if got, err := item.PlainNumbers([]any{json.Number("1e999999999")}); err == nil {
		t.Errorf("PlainNumbers(1e999999999) = %v, want an error", got)
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text, n := rapid.String().Draw(t, "text"), rapid.IntRange(0, 40).Draw(t, "n")
		short := item.Clip(text, n)
		switch rest, cut := strings.CutSuffix(short, "…"); {
		case len(text) <= n && short != text:
			t.Fatalf("%q became %q", text, short)
		case len(text) > n && (!cut || len(rest) > n || len(rest) < n-utf8.UTFMax || !utf8.ValidString(rest)):
			t.Fatalf("%q became %q of at most %d bytes", text, short, n)
		}
	})
}

// What is no JSON is told by where it breaks off, which shows nothing of a stranger's text.
func TestParseValueSaysWhere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ typ, text, want string }{
		{item.TypeObject, "{a:1}", "it is not a JSON object: invalid character 'a' looking for beginning of object key string, at byte 2"},
		{item.TypeArray, "[1] [2]", "it is not a JSON array: more than one value"},
		{item.TypeObject, "[]", "it is JSON, but not an object"},
		{item.TypeArray, `{"a": 1}`, "it is JSON, but not an array"},
		{item.TypeObject, " ", "it is not a JSON object: empty"},
		{item.TypeObject, `{"a": `, "it is not a JSON object: it ends too early"},
	} {
		if _, err := item.ParseValue(c.typ, c.text); err == nil || err.Error() != c.want {
			t.Errorf("%s %q: %v; want %s", c.typ, c.text, err, c.want)
		}
	}
}

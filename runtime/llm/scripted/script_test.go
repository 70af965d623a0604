package scripted

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		src  string
		line int
		says string
	}{
		{"", 0, "no turns"},
		{"turns: []", 0, "no turns"},
		{"turns: 5", 1, "cannot unmarshal"},
		{"turns:\n  - text: a\n    txt: b", 3, `unknown key "txt"`},
		{"turns:\n  - match: {frist: a}\n    text: b", 2, `unknown key "frist"`},
		{"turns:\n - text: [", 2, "did not find"},
		{"turns:\n  - text: a\n  - text: '{{ .Turn '", 3, "unclosed action"},
		{"turns:\n  - text: '{{ nofunc }}'", 2, `function "nofunc" not defined`},
		{"turns:\n  - text: '{{ range results \"a\" }}{{ break }}{{ end }}'", 2, "knows expressions, if, with and range"},
		{"turns:\n  - text: '{{ if . }}{{ else }}{{ template \"a\" }}{{ end }}'", 2, "knows expressions, if, with and range"},
		{"turns:\n  - text: '{{ range $a := results \"a\" }}{{ end }}'", 2, "no variables"},
		{"turns:\n  - text: '{{ $ }}'", 2, "$ is no value"},
		{"turns:\n  - text: '{{ define \"a\" }}{{ end }}'", 2, "defines no templates"},
		{"turns:\n  - text: '{{ $a := 1 }}'", 2, "no variables"},
		{"turns:\n  - text: '{{ .Model 1 }}'", 2, ".Model takes no arguments"},
		{"turns:\n  - text: '{{ 1 | .Model }}'", 2, ".Model takes no arguments"},
		{"turns:\n  - text: a\n    match:\n      last_regex: '('", 4, "missing closing"},
		{"turns:\n  - text: a\n    delay: soon", 3, "invalid duration"},
		{"turns:\n  - text: a\n    delay: -1s", 3, "negative"},
		{"turns:\n  - text: a\n    stop_reason: tired", 3, "none of end"},
		{"turns:\n  - text: a\n    times: -1", 2, "from 1"},
		{"turns:\n  - text: a\n    cut_after: -1", 2, "from 0"},
		{"turns:\n  - text: a\n    usage: {input_tokens: -1}", 2, "negative"},
		{"turns:\n  - {}", 2, "does nothing"},
		{"turns:\n  - tool_calls: [{input: {a: 1}}]", 2, "needs a name"},
		{"turns:\n  - tool_calls: [{name: n, input: {a: 1}, input_json: '{}'}]", 2, "both input and input_json"},
		{"turns:\n  - tool_calls: [{name: n, input: {a: '{{'}}]", 2, "unclosed action"},
		{"turns:\n  - tool_calls: [{name: n, input: {1: a}}]", 2, "must be strings"},
		{"turns:\n  - error: {message: m}", 2, "status from 400 to 599"},
		{"turns:\n  - error: {status: 200}", 2, "status from 400 to 599"},
		{"turns:\n  - text: a\n    error: {status: 500}", 2, "replaces the answer"},
		{"turns:\n  - text: a\n    error: {status: 500, after: 1}", 2, "no status and no headers"},
		{"turns:\n  - text: a\n    error: {after: 0}", 2, "counts from 1"},
		{"turns:\n  - hang: true\n    error: {status: 500}", 2, "beside hang"},
		{"turns:\n  - text: a\n    raw: {body: b}", 2, "raw is the whole answer"},
		{"turns:\n  - raw: {status: 100}", 2, "from 200 to 599"},
		{"turns:\n  - raw: {body: ab, cut_after: 3}", 2, "0 to 2"},
	} {
		_, err := Parse("s.yaml", []byte(test.src))
		var own *Error
		if !errors.As(err, &own) {
			t.Errorf("%q: got %v", test.src, err)
			continue
		}
		if own.Path != "s.yaml" || own.Line != test.line || !strings.Contains(own.Reason, test.says) {
			t.Errorf("%q: got %q, want line %d and %q", test.src, own, test.line, test.says)
		}
	}
}

// TestDocumentedScript parses the example of the package comment.
func TestDocumentedScript(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(src), "//\tturns:\n")
	example, _, _ = strings.Cut(example, "\n//\n")
	script, err := Parse("doc.go", []byte("turns:\n"+strings.ReplaceAll(example, "//\t", "")))
	if err != nil || len(script.turns) != 5 {
		t.Errorf("%v in\n%s", err, example)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("turns: [{text: a, match: {turn: 1, last_regex: b+}}]"))
	f.Add([]byte("turns:\n - tool_calls: &c [{name: n, input: {a: ['{{ result 0 }}']}}]\n - tool_calls: *c"))
	f.Add([]byte("turns: [{error: {status: 500, retry_after: 1s}}, {hang: true}]"))
	f.Add([]byte("&a [*a]"))
	f.Fuzz(func(t *testing.T, src []byte) {
		script, err := Parse("s.yaml", src)
		var own *Error
		if err != nil && !errors.As(err, &own) {
			t.Errorf("error %v (%T)", err, err)
		}
		if err == nil && len(script.turns) == 0 {
			t.Error("a script without turns")
		}
	})
}

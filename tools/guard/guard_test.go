package guard

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

const signatureText = "rye:signed:2026-03-29T06:39:14Z:" +
	"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef:kisYftUHVTAfoD_2PfYKkdlDqw==:4b987fd4e40303ac"

func TestSignatures(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want string }{
		"markdown":           {"<!-- " + signatureText + " -->\n# T\n", "# T\n"},
		"hash":               {"# " + signatureText + "\nx: 1\n", "x: 1\n"},
		"slashes":            {"// " + signatureText + "\nx()\n", "x()\n"},
		"with provenance":    {"# " + signatureText + "|hub@someone\nx: 1\n", "x: 1\n"},
		"windows":            {"# " + signatureText + "\r\nx\r\n", "x\r\n"},
		"byte order mark":    {"\ufeff<!-- " + signatureText + " -->\n# T", "# T"},
		"below a shebang":    {"#!/bin/sh\n# " + signatureText + "\nls\n", "#!/bin/sh\nls\n"},
		"alone":              {"# " + signatureText, ""},
		"as read shows it":   {"1:0a1b2c|# " + signatureText + "\n2:3d4e5f|x: 1\n", "2:3d4e5f|x: 1\n"},
		"read, shebang":      {"1:0a1b2c|#!/bin/sh\n2:3d4e5f|# " + signatureText + "\n3:aaaaaa|ls\n", "1:0a1b2c|#!/bin/sh\n3:aaaaaa|ls\n"},
		"in JSON":            {`{"n":12345678901234567890,"content":"# ` + signatureText + `\nx: <1>\n","a":[]}`, `{"n":12345678901234567890,"content":"x: <1>\n","a":[]}`},
		"in the middle":      {"one\n# " + signatureText + "\ntwo\n", "one\n# " + signatureText + "\ntwo\n"},
		"only mentioned":     {"# about rye:signed:\n", "# about rye:signed:\n"},
		"no comment":         {signatureText + "\nx\n", signatureText + "\nx\n"},
		"damaged":            {"# " + signatureText[:60] + "\nx\n", "# " + signatureText[:60] + "\nx\n"},
		"behind other words": {"# see " + signatureText + "\nx\n", "# see " + signatureText + "\nx\n"},
	}
	for name, tt := range tests {
		if got := Clean(tt.text); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestBinary(t *testing.T) {
	t.Parallel()
	png := "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
	tests := map[string]struct{ text, want string }{
		"text":                     {"ä\x1b[31m\t", "ä\x1b[31m\t"},
		"another encoding":         {"caf\xe9 au lait", "caf\ufffd au lait"},
		"image":                    {png, "[binary, no text: 16 bytes, image/png]"},
		"noise":                    {strings.Repeat("\xf8\xf9a", 10), "[binary, no text: 30 bytes, application/octet-stream]"},
		"in JSON":                  {`{"out":"a\u0000b"}`, `{"out":"[binary, no text: 3 bytes, application/octet-stream]"}`},
		"lost by whoever wrote it": {`["` + strings.Repeat("\ufffd", 9) + `"]`, `["[binary, no text: 27 bytes, application/octet-stream]"]`},
		"JSON with a bad byte":     {"{\"a\":\"\xe9\"}", "{\"a\":\"\ufffd\"}"},
	}
	for name, tt := range tests {
		if got := Clean(tt.text); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestShortenText(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&all, "line %d\n", i+1)
	}
	text := all.String()
	got := Shorten(text, 400, "the whole is artifact X")
	head, rest, found := strings.Cut(got, "… [")
	var left, first, last, lines int
	_, err := fmt.Sscanf(rest, "%d characters left out, lines %d to %d of %d] …", &left, &first, &last, &lines)
	if !found || err != nil || len(got) > 400 || lines != 1000 || !strings.HasSuffix(got, "\n[shortened from 8893 characters; the whole is artifact X]") {
		t.Fatalf("%v: %s", err, got)
	}
	if !strings.HasSuffix(head, fmt.Sprintf("line %d\n", first-1)) || !strings.Contains(rest, fmt.Sprintf("] …\nline %d\n", last+1)) {
		t.Errorf("lines %d to %d are said to be missing in\n%s", first, last, got)
	}
	if !strings.HasPrefix(text, head) || left != len(text)-len(head)-len("line 1000\n")*(1000-last)+(1000-last-1) {
		t.Errorf("%d characters are said to be missing in\n%s", left, got)
	}
	if got := Shorten(strings.Repeat("é", 1000), 400, "more"); !strings.Contains(got, "é … [") || !strings.Contains(got, "characters left out] … é") {
		t.Errorf("one line: %s", got)
	}
	if got := firstRunes(text, -1); got != "" { // the room that a gap of very large numbers leaves
		t.Errorf("without room: %d bytes", len(got))
	}
	for text, want := range map[string]string{ // with room for hardly anything
		"0123456789": "0123456789", strings.Repeat("x", 15): strings.Repeat("x", 15), strings.Repeat("x", 16): "xxxx… [12 more]",
	} {
		if got := cut(text, 4); got != want {
			t.Errorf("%d characters in 4: %q, want %q", len(text), got, want)
		}
	}
	if got := Shorten(text[:400], 400, "more"); got != text[:400] {
		t.Errorf("what fits was changed: %s", got)
	}
}

func TestShortenJSON(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a word ", 700)
	numbers := make([]int, 500)
	for i := range numbers {
		numbers[i] = i
	}
	raw, err := json.Marshal(map[string]any{
		"exit_code": 0, "stdout": long, "numbers": numbers, "deep": map[string]any{"er": map[string]any{"text": long}}, "ok": true, "none": nil,
	})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		ExitCode *int `json:"exit_code"`
		Stdout   string
		Numbers  []any
		Deep     struct{ Er struct{ Text string } }
		OK       bool
		Note     string `json:"_shortened"`
	}
	short := Shorten(string(raw), 1200, "read it")
	if err := json.Unmarshal([]byte(short), &got); err != nil {
		t.Fatalf("%v: %s", err, short)
	}
	if got.ExitCode == nil || !got.OK || !strings.HasPrefix(got.Stdout, "a word") || !strings.HasSuffix(got.Stdout, "word ") ||
		!strings.Contains(got.Stdout, "characters left out") || !strings.HasPrefix(got.Deep.Er.Text, "a word") {
		t.Errorf("%s", short)
	}
	n := len(got.Numbers)
	if n < 5 || got.Numbers[0] != 0.0 || got.Numbers[n-1] != 499.0 || !strings.Contains(short, fmt.Sprintf("… [%d of 500 elements left out] …", 501-n)) {
		t.Errorf("numbers: %v", got.Numbers)
	}
	if want := fmt.Sprintf("shortened from %d characters; read it", len(raw)); got.Note != want {
		t.Errorf("note %q, want %q", got.Note, want)
	}
	if utf8.RuneCountInString(short) < 800 {
		t.Errorf("only %d of 1200 characters are used: %s", len(short), short)
	}
	var list []any
	short = Shorten("["+strings.Repeat(`{"a":1},`, 999)+`{"a":2}]`, 400, "read it")
	if err := json.Unmarshal([]byte(short), &list); err != nil || len(list) < 4 || list[len(list)-1] != "shortened from 8001 characters; read it" {
		t.Errorf("%v: %s", err, short)
	}
	// A string alone is text.
	if short = Shorten(`"`+strings.Repeat("x", 1000)+`"`, 400, "read it"); !strings.HasPrefix(short, `"xxx`) {
		t.Errorf("%s", short)
	}
	// So many keys do not fit: it is shown as text.
	if short = Shorten(`{"`+strings.Repeat(`k":1,"k`, 999)+`":1}`, 400, "read it"); !strings.HasSuffix(short, "read it]") {
		t.Errorf("%s", short)
	}
}

// value is a JSON value with some long parts.
func value(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := 3
		if depth > 0 {
			kinds = 5
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return rapid.Float64Range(-1e9, 1e9).Draw(t, "number")
		case 1:
			return rapid.SampledFrom([]any{nil, true, false}).Draw(t, "word")
		case 2:
			return strings.Repeat(rapid.StringN(0, 20, -1).Draw(t, "text"), rapid.SampledFrom([]int{1, 3, 300}).Draw(t, "times"))
		case 3:
			return rapid.SliceOfN(value(depth-1), 0, 40).Draw(t, "list")
		default:
			return rapid.MapOfN(rapid.StringN(0, 8, -1), value(depth-1), 0, 20).Draw(t, "object")
		}
	})
}

func TestShortenProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		object := rapid.MapOfN(rapid.StringN(0, 8, -1), value(2), 0, 8).Draw(t, "object")
		raw, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		most := rapid.IntRange(1000, 3000).Draw(t, "most")
		short := Shorten(string(raw), most, "the whole is artifact 0123456789abcdef: read it with rye_read_artifact")
		checkShort(t, string(raw), short, most)
		var keys map[string]any
		if err := json.Unmarshal([]byte(short), &keys); err != nil {
			t.Fatalf("%v: %s", err, short)
		}
		for key := range object {
			if _, named := keys[key]; !named {
				t.Fatalf("the key %q is not in %s", key, short)
			}
		}
	})
}

type failer interface {
	Fatalf(format string, args ...any)
}

func checkShort(t failer, whole, short string, most int) {
	if n := utf8.RuneCountInString(short); n > most && n > utf8.RuneCountInString(whole) || n > max(most, 0) {
		t.Fatalf("%d characters, at most %d: %s", n, most, short)
	}
	if utf8.ValidString(whole) && !utf8.ValidString(short) {
		t.Fatalf("not UTF-8: %q", short)
	}
	if again := Shorten(short, most, "something else"); again != short {
		t.Fatalf("shortened twice:\n%s\n%s", short, again)
	}
}

// A model is shown text within the bound, whatever a tool returns.
func FuzzShown(f *testing.F) {
	f.Add("plain text\nof two lines", 20)
	f.Add(`{"a":"`+strings.Repeat("x", 300)+`","b":[1,2,3]}`, 150)
	f.Add("# "+signatureText+"\nx", 100)
	f.Add("\x00\xff", 5)
	f.Add("["+strings.Repeat(" ", 500)+"]", 200)
	f.Add(strings.Repeat("[", 500)+strings.Repeat("]", 500), 200)
	f.Fuzz(func(t *testing.T, text string, most int) {
		most = max(0, min(most, 1<<16))
		clean := Clean(text)
		if !utf8.ValidString(clean) {
			t.Fatalf("not UTF-8: %q", clean)
		}
		if json.Valid([]byte(text)) && utf8.ValidString(text) && !json.Valid([]byte(clean)) && strings.ContainsAny(text[:1], "[{") {
			t.Fatalf("no JSON any more: %q", clean)
		}
		checkShort(t, clean, Shorten(clean, most, "more"), most)
	})
}

func TestGiven(t *testing.T) {
	t.Parallel()
	var g Given
	long := strings.Repeat("x", minRepeated)
	if _, _, found := g.Before(long, "first"); found {
		t.Error("nothing was given yet")
	}
	if earlier, sum, found := g.Before(long, "second"); !found || earlier != "first" || sum == "" {
		t.Errorf("%q, %v", earlier, found)
	}
	if _, _, found := g.Before(long+"y", "third"); found {
		t.Error("other content was taken for the same")
	}
	for range 2 {
		if _, sum, found := g.Before("short", "short"); found || sum != "" {
			t.Error("a reference would be longer than the result")
		}
	}
	_, _, _ = g.Before(`{"duration_ms":12,"x":"`+long+`"}`, "timed")
	if earlier, _, _ := g.Before(`{"duration_ms":7,"x":"`+long+`"}`, "again"); earlier != "timed" {
		t.Error("how long it took makes two results differ")
	}
}

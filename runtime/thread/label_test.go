package thread_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

func TestParseName(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"  Fix the lexer ":                       "Fix the lexer",
		"👩‍💻 at work":                            "👩‍💻 at work",
		strings.Repeat("ü", thread.MaxNameRunes): strings.Repeat("ü", thread.MaxNameRunes),
		"":                          "",
		" \t ":                      "",
		strings.Repeat("x", 10_000): "",
		"a\nb":                      "",
		"\x1b[31mred":               "",
		"a\u202eb":                  "",
		"a\u2028b":                  "",
		"\xff":                      "",
		"nul\x00":                   "",
		strings.Repeat("ü", thread.MaxNameRunes+1): "",
	} {
		got, err := thread.ParseName(text)
		if got != want || (want == "") != errors.Is(err, thread.ErrBadLabel) {
			t.Errorf("%.40q: %.40q, %v", text, got, err)
		}
		if plain := thread.PlainName(text); plain != "" {
			if again, err := thread.ParseName(plain); err != nil || again != plain {
				t.Errorf("the plain name of %.40q is %.40q, which is refused: %v", text, plain, err)
			}
		}
	}
}

func TestPatchMetadata(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	long := `{"a":"` + strings.Repeat("x", thread.MaxMetadataBytes) + `"}`
	for _, tt := range []struct{ now, patch, want string }{
		{``, `{"a":1}`, `{"a":1}`},
		{`{}`, `{}`, `{}`},
		{`{"a":1,"b":{"c":2,"d":3}}`, `{"b":{"c":null,"e":"x"}}`, `{"a":1,"b":{"d":3,"e":"x"}}`},
		{`{"a":[1,2]}`, `{"a":[3]}`, `{"a":[3]}`},
		{`{"a":"text"}`, `{"a":{"b":null}}`, `{"a":{}}`},
		{`{"a":1}`, `{"a":null,"z":null}`, `{}`},
		{``, `{"n":9007199254740993,"f":1.50,"t":"<b> & é"}`, `{"f":1.50,"n":9007199254740993,"t":"<b> & é"}`},
		{`{"forked_from":"t-1"}`, `{"a":1}`, `{"a":1,"forked_from":"t-1"}`},
		{``, deep(thread.MaxMetadataDepth), deep(thread.MaxMetadataDepth)},
		{``, deep(thread.MaxMetadataDepth + 1), ""},
		{deep(2), `{"a":{"a":` + deep(thread.MaxMetadataDepth-1) + `}}`, ""},
		{``, `[1]`, ""},
		{``, `null`, ""},
		{``, `"x"`, ""},
		{``, `{"a":1} x`, ""},
		{``, `{"a":`, ""},
		{``, `{"":1}`, ""},
		{``, `{"a":{"b\nc":1}}`, ""},
		{``, `{"a\"b":1}`, ""},
		{``, `{"a\\b":1}`, ""},
		{``, `{"` + strings.Repeat("k", thread.MaxKeyRunes+1) + `":1}`, ""},
		{`{"forked_from":"t-1"}`, `{"forked_from":"t-2"}`, ""},
		{`{"forked_from":"t-1"}`, `{"forked_from":null}`, ""},
		{``, long, ""},
		{`{"b":"` + strings.Repeat("y", thread.MaxMetadataBytes/2) + `"}`, `{"a":"` + strings.Repeat("x", thread.MaxMetadataBytes/2) + `"}`, ""},
	} {
		got, err := thread.PatchMetadata(json.RawMessage(tt.now), json.RawMessage(tt.patch))
		if string(got) != tt.want || (tt.want == "") != errors.Is(err, thread.ErrBadLabel) {
			t.Errorf("%.80s with %.80s: %.80s, %v; want %.80s", tt.now, tt.patch, got, err, tt.want)
		}
	}
}

func TestInheritedMetadata(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"forked_from":"t-1","team":"a"}`: `{"team":"a"}`, ``: `{}`, `{"a\"b":1}`: ``, `[`: ``,
	} {
		if got := thread.InheritedMetadata(json.RawMessage(raw)); string(got) != want {
			t.Errorf("of %s: %s", raw, got)
		}
	}
}

func FuzzPatchMetadata(f *testing.F) {
	f.Add(`{"a":{"b":1}}`, `{"a":{"b":null},"c":[1,"x"]}`)
	f.Add(``, `{"forked_from":1}`)
	f.Add(`{"\u0000":1}`, `{`)
	f.Fuzz(func(t *testing.T, now, patch string) {
		got, err := thread.PatchMetadata(json.RawMessage(now), json.RawMessage(patch))
		if err != nil {
			if !errors.Is(err, thread.ErrBadLabel) {
				t.Errorf("refused with %v", err)
			}
			return
		}
		var object map[string]any
		if err := json.Unmarshal(got, &object); err != nil || object == nil || len(got) > thread.MaxMetadataBytes || !utf8.Valid(got) {
			t.Errorf("%q with %q is %q: %v", now, patch, got, err)
		}
		if again, err := thread.ParseMetadata(got); err != nil || string(again) != string(got) {
			t.Errorf("%q is written again as %q: %v", got, again, err)
		}
	})
}

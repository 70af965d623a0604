package secret_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/secret"
	"github.com/rye-mcp/rye-mcp/spaces/inputs"
)

const token = `tök/en+"7&<x> `

// encodings are the ways in which a tool may write what it was given.
var encodings = map[string]func(string) string{
	"raw":                       func(s string) string { return s },
	"JSON":                      func(s string) string { raw, _ := json.Marshal(s); return string(raw) },
	"JSON in JSON":              func(s string) string { return inJSON(inJSON(s)) },
	"query":                     url.QueryEscape,
	"path":                      url.PathEscape,
	"lower escapes":             func(s string) string { return strings.ReplaceAll(strings.ToLower(url.QueryEscape(s)), "+", "%20") },
	"JSON with escaped slashes": func(s string) string { return strings.ReplaceAll(inJSON(s), "/", `\/`) },
	"base64":                    func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64 URL":                func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
	"base64 of 1 more":          func(s string) string { return base64.StdEncoding.EncodeToString([]byte("u" + s + "12")) },
	"base64 of 2 more":          func(s string) string { return base64.StdEncoding.EncodeToString([]byte("u:" + s + "1")) },
	"base64 in lines": func(s string) string {
		return inLines(base64.StdEncoding.EncodeToString([]byte("me:"+s)), "\n")
	},
	"base64 in lines in JSON": func(s string) string {
		return inJSON(inLines(base64.StdEncoding.EncodeToString([]byte("me:"+s)), "\r\n"))
	},
	"hex":       func(s string) string { return hex.EncodeToString([]byte(s)) },
	"upper hex": func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
	"in lines":  func(s string) string { return inLines(s, "\n") },
}

func inJSON(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s)
	return strings.TrimSpace(b.String())
}

// inLines breaks a text every six characters.
func inLines(s, end string) string {
	var b strings.Builder
	for i, r := range []rune(s) {
		if i > 0 && i%6 == 0 {
			b.WriteString(end)
		}
		b.WriteRune(r)
	}
	return b.String()
}

func TestMaskEncodings(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"abcdefgh", "tok/en+7=&?", "ä ö ü", `C:\new\real`, "-----BEGIN-----\nabcdef0123456789\n-----END-----\n"} {
		v := secret.New(map[string]string{"token": value})
		for name, encode := range encodings {
			if name == "lower escapes" && strings.ToLower(value) != value {
				continue // it changes the letters too
			}
			written := encode(value)
			got := v.Mask("before " + written + " after")
			if !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") || !strings.Contains(got, "{secret:token}") {
				t.Errorf("%s of %q: %q became %q", name, value, written, got)
			}
			if left := strings.Trim(strings.ReplaceAll(got[7:len(got)-6], "{secret:token}", ""), "\"\\=\r\n"); len(left) > 6 {
				t.Errorf("%s of %q: of %q is left %q", name, value, written, left)
			}
		}
	}
}

func TestMask(t *testing.T) {
	t.Parallel()
	v := secret.New(map[string]string{"a": "abcdefgh", "long": "xabcdefghx", "b": "ghijklmn", "wide": "mnopqrstuvwxyz", "key": "line-number-one-1\nline-number-two-2\n",
		"indented": "first line\n    an indented line"})
	tests := []struct{ text, want string }{
		{"", ""},
		{"nothing", "nothing"},
		{"abcdefg", "abcdefg"},
		{"abcdefgh", "{secret:a}"},
		{"abcdefghabcdefgh", "{secret:a}{secret:a}"},
		{"xabcdefghx", "{secret:long}"},                 // the longest of those that hold each other
		{"abcdefghijklmn", "{secret:a}"},                // no part of two that overlap is left
		{"-- ghijklmnopqrstuvwxyz", "-- {secret:wide}"}, // both have the name of the longer one
		{"{secret:a} {secret:other}", "{secret:a} {secret:other}"},
		{"1:line-number-two-2", "1:{secret:key}"}, // a line of a longer value
		{`C:\nabcdefgh`, `C:\n{secret:a}`},        // an escape, or the beginning of a name
		{`C:\\nabcdefgh`, `C:\\n{secret:a}`},
		{"abcd\nefgh", "{secret:a}"},
		{"\xffabcdefgh\x00", "\xff{secret:a}\x00"},
		{"  a: |\n    line-number-one-1", "  a: |\n    {secret:key}"},
		{"an indented line is shown", "{secret:indented} is shown"},
	}
	for _, tt := range tests {
		if got := v.Mask(tt.text); got != tt.want {
			t.Errorf("Mask(%q) = %q, want %q", tt.text, got, tt.want)
		}
		if got := string(v.MaskBytes([]byte(tt.text))); got != tt.want {
			t.Errorf("MaskBytes(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	given := map[string]string{"token": "abcdefgh", "two": "ijklmnop"}
	v := secret.New(given)
	got := v.Values()
	if !reflect.DeepEqual(got, given) {
		t.Errorf("%v", got)
	}
	got["token"] = "other"
	if v.Values()["token"] != "abcdefgh" || (*secret.Vault)(nil).Values() != nil {
		t.Error("the values can be changed, or there are some where there is no vault")
	}
}

func TestReveal(t *testing.T) {
	t.Parallel()
	v := secret.New(map[string]string{"token": `a"b\c` + "\n<d>", "two": "{secret:token} is no placeholder in a value"})
	tests := []struct{ args, want string }{
		{`{}`, `{}`},
		{`{"n":1.50,"big":12345678901234567890}`, `{"n":1.50,"big":12345678901234567890}`},
		{`{"a":"{secret:token}"}`, `{"a":"a\"b\\c\n<d>"}`},
		{`{"a":["x {secret:token} y",{"b":"{secret:token}"}]}`, `{"a":["x a\"b\\c\n<d> y",{"b":"a\"b\\c\n<d>"}]}`},
		{`{"a":"\u007bsecret:token}"}`, `{"a":"a\"b\\c\n<d>"}`},
		{`{"a":"\\{secret:token}\""}`, `{"a":"\\a\"b\\c\n<d>\""}`},
		{`{"{secret:token}" : 1}`, `{"{secret:token}" : 1}`}, // no names of fields
		{`{"a":"{secret:other} {secret:} {secret:token"}`, `{"a":"{secret:other} {secret:} {secret:token"}`},
		{`{"a":"{secret:two}"}`, `{"a":"{secret:token} is no placeholder in a value"}`},
	}
	for _, tt := range tests {
		if got := string(v.Reveal(json.RawMessage(tt.args))); got != tt.want {
			t.Errorf("Reveal(%s) = %s, want %s", tt.args, got, tt.want)
		}
	}
	if got := v.Named("{secret:token} {secret:other} {secret:two}"); !reflect.DeepEqual(got, []string{"{secret:token}", "{secret:two}"}) {
		t.Errorf("Named: %q", got)
	}
	if !v.Has("two") || v.Has("other") {
		t.Error("Has")
	}
}

func TestMaskJSON(t *testing.T) {
	t.Parallel()
	v := secret.New(map[string]string{"token": `ab"cd"ef`, "word": "completed", "syntax": `":"state`})
	tests := []struct{ in, want string }{
		{`{"a":"x ab\"cd\"ef y","n":1.0}`, `{"a":"x {secret:token} y","n":1.0}`},
		{`{"ab\"cd\"ef":1}`, `{"ab\"cd\"ef":1}`},
		{`{"state":"completed","text":"completed","outputs":{"answer":"completed"}}`, `{"state":"completed","text":"{secret:word}","outputs":{"answer":"{secret:word}"}}`},
		{`{"state":"completed","text":"it completed."}`, `{"state":"completed","text":"it {secret:word}."}`},
		{`{"a":"state"}`, `{"a":"state"}`},
		{`no JSON: ab"cd"ef`, `no JSON: {secret:token}`},
	}
	for _, tt := range tests {
		if got := string(v.MaskJSON([]byte(tt.in))); got != tt.want {
			t.Errorf("MaskJSON(%s) = %s, want %s", tt.in, got, tt.want)
		}
	}
}

func TestEmpty(t *testing.T) {
	t.Parallel()
	for _, v := range []*secret.Vault{nil, {}, secret.New(nil)} {
		if !v.Empty() || v.Has("x") || v.Mask("{secret:x}") != "{secret:x}" || v.RevealText("{secret:x}") != "{secret:x}" ||
			v.Named("{secret:x}") != nil || string(v.Reveal(json.RawMessage(`{}`))) != "{}" || string(v.MaskJSON([]byte("x"))) != "x" {
			t.Error("an empty vault does something")
		}
	}
}

// values draws secrets that may hold and overlap each other.
func values(t *rapid.T) map[string]string {
	value := rapid.StringMatching(`[ab"/\\ é\n=+]{8,20}`).Filter(func(s string) bool { return len(strings.TrimSpace(s)) >= 8 })
	drawn := map[string]string{}
	for i, s := range rapid.SliceOfN(value, 1, 3).Draw(t, "values") {
		drawn[string(rune('x'+i))] = s
	}
	return drawn
}

// Masking leaves none of the values, in no encoding, and masking again changes
// nothing.
func TestMaskProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		secrets := values(t)
		v := secret.New(secrets)
		piece := rapid.Custom(func(t *rapid.T) string {
			kind := rapid.SampledFrom([]string{"", "raw", "JSON", "query", "base64", "hex"}).Draw(t, "kind")
			if kind == "" {
				return rapid.StringMatching(`[ab"{}/\\ \n]{0,9}`).Draw(t, "text")
			}
			return encodings[kind](secrets[rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "name")])
		})
		text := strings.Join(rapid.SliceOf(piece).Draw(t, "pieces"), "")
		masked := v.Mask(text)
		for name, value := range secrets {
			for kind, encode := range encodings {
				if kind != "in lines" && !strings.Contains(kind, "more") && !strings.Contains(kind, "lines") && !strings.Contains(kind, "lower") &&
					strings.Contains(masked, encode(value)) {
					t.Fatalf("%s of %s is left in %q", kind, name, masked)
				}
			}
		}
		if again := v.Mask(masked); again != masked {
			t.Fatalf("masked again: %q became %q", masked, again)
		}
	})
}

// A text that was revealed is masked to what it was, and no other text changes.
func TestRevealAndMask(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := secret.New(map[string]string{"x": "!1234567", "y": "!abcdefgh"})
		piece := rapid.OneOf(rapid.SampledFrom([]string{"{secret:x}", "{secret:y}", "{secret:z}", "{secret:", "x}", "\\", `"`}),
			rapid.StringMatching(`[^!]{0,5}`))
		text := strings.Join(rapid.SliceOf(piece).Draw(t, "pieces"), "")
		if got := v.Mask(v.RevealText(text)); got != text {
			t.Fatalf("%q became %q", text, got)
		}
		args, _ := json.Marshal(map[string]any{"a": []string{text}})
		var back struct{ A []string }
		if err := json.Unmarshal(v.MaskJSON(v.Reveal(args)), &back); err != nil || strings.ToValidUTF8(text, "\ufffd") != back.A[0] {
			t.Fatalf("%q became %q (%v)", text, back.A, err)
		}
	})
}

// However a stream is cut into pieces, it is masked as a whole.
func TestWriter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := secret.New(map[string]string{"x": "!1234567", "y": "!longer than the other"})
		unit := rapid.SampledFrom([]string{"!1234567", "!longer than the other", "plain text. ", "!123\n4567"})
		text := strings.Repeat(strings.Join(rapid.SliceOfN(unit, 1, 9).Draw(t, "units"), "-"), rapid.IntRange(1, 2000).Draw(t, "times"))
		var out bytes.Buffer
		w := v.Writer(&out)
		for rest := text; rest != ""; {
			n := min(len(rest), rapid.IntRange(1, 40_000).Draw(t, "piece"))
			if got, err := w.Write([]byte(rest[:n])); got != n || err != nil {
				t.Fatal(got, err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if out.String() != v.Mask(text) {
			t.Fatal("the pieces are masked in another way than the whole")
		}
	})
}

// A secret that repeats itself must not make a stream be held back without end.
func TestWriterLetsGo(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := secret.New(map[string]string{"x": "aaaaaaaa"}).Writer(&out)
	for range 100 {
		if _, err := w.Write(bytes.Repeat([]byte("a"), 4096)); err != nil {
			t.Fatal(err)
		}
	}
	if out.Len() == 0 {
		t.Error("nothing was let through")
	}
	if err := w.Close(); err != nil || strings.Contains(out.String(), "aaaaaaaa") {
		t.Errorf("%v, %q", err, out.String())
	}
}

// BenchmarkMask masks 1 MB of a log: what it takes does not depend on how many
// lines a secret has.
func BenchmarkMask(b *testing.B) {
	text := strings.Repeat("a line of a log with words, numbers 1234567890 and \\n escapes\n", 1<<20/64)
	for _, lines := range []int{1, 50, 1000} {
		var key strings.Builder
		for i := range lines {
			fmt.Fprintf(&key, "%x\n", sha256.Sum256([]byte{byte(i), byte(i >> 8)}))
		}
		v := secret.New(map[string]string{"key": key.String()})
		b.Run(fmt.Sprint(lines), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				v.Mask(text)
			}
		})
	}
}

func FuzzMask(f *testing.F) {
	f.Add(token, "x "+token+" y")
	f.Add("abcdefgh", "YWJjZGVmZ2g= 6162636465666768 abcd\\nefgh")
	f.Add("}12345678", "{secret:token}12345678")
	f.Add("aaaaaaaa", "aaaaaaaaaaa\naaa")
	placeholder := inputs.Placeholder("token")
	f.Fuzz(func(t *testing.T, value, text string) {
		if len(value) < 8 || len(value) > 1000 || len(text) > 10_000 {
			return
		}
		v := secret.New(map[string]string{"token": value})
		masked := v.Mask(text + value)
		// The braces of a placeholder may be the end of a value.
		if !strings.ContainsAny(value, "{}") && !strings.Contains(placeholder, value) && strings.Contains(masked, value) {
			t.Errorf("%q holds %q", masked, value)
		}
		if raw := []byte(text); json.Valid(raw) {
			if got := v.MaskJSON(raw); !json.Valid(got) {
				t.Errorf("%s became %s", raw, got)
			}
			if got := v.Reveal(raw); !json.Valid(got) {
				t.Errorf("%s revealed is %s", raw, got)
			}
		}
	})
}

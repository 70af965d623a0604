package postgres

import (
	"regexp"
	"strings"
	"testing"
)

func TestTranslate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ query, want string }{
		{"SELECT 1", "SELECT 1"},
		{"a = ? AND b = ?", "a = $1 AND b = $2"},
		{"a = ?2 AND b = ?1 AND c = ?", "a = $2 AND b = $1 AND c = $3"},
		{"a = ?1 OR b = ?1", "a = $1 OR b = $1"},
		{"? ?10 ?", "$1 $10 $11"},
		{"a = '?' AND b = ?", "a = '?' AND b = $1"},
		{"a = 'it''s ?' AND b = ?", "a = 'it''s ?' AND b = $1"},
		{`"od""d?" = ?`, `"od""d?" = $1`},
		{"a -- why?\n = ?", "a -- why?\n = $1"},
		{"a /* who? -- */ = ?", "a /* who? -- */ = $1"},
		{"a = ? -- INDEXED BY x", "a = $1 -- INDEXED BY x"},
		{"FROM threads INDEXED BY threads_created WHERE a = ?", "FROM threads   WHERE a = $1"},
		{"FROM threads t\n\tindexed\tby\n x, y", "FROM threads t\n\t , y"},
		{"SELECT indexed, unindexed BY", "SELECT indexed, unindexed BY"},
		{"'INDEXED BY x'", "'INDEXED BY x'"},
		{"a = '?", "a = '?"},
		{"a /* ?", "a /* ?"},
		{"a - ? / ?", "a - $1 / $2"},
		{"p?", "p$1"},
		{"größe = ?", "größe = $1"},
		{"", ""},
	} {
		if got := translate(test.query); got != test.want {
			t.Errorf("%q: %q, want %q", test.query, got, test.want)
		}
	}
}

// TestTranslation: a text is translated once, and however many there are, few are kept.
func TestTranslation(t *testing.T) {
	t.Parallel()
	var tr translation
	for n := range 3 * mostTranslated {
		if got := tr.of(strings.Repeat("x ", n%1500) + "?"); !strings.HasSuffix(got, "$1") {
			t.Fatal(got)
		}
	}
	if len(tr.done) > mostTranslated {
		t.Errorf("%d are kept", len(tr.done))
	}
}

// opaqueText is what translate must not touch, as an expression of its own.
var opaqueText = regexp.MustCompile(`(?s)'[^']*('|$)|"[^"]*("|$)|--[^\n]*(\n|$)|/\*.*?(\*/|$)`)

func FuzzTranslate(f *testing.F) {
	for _, seed := range []string{"a = ? AND b = ?3", "'?' \"?\" -- ?\n/*?*/ ?", "x INDEXED BY y ?", "INDEXED BY INDEXED BY x", "?99999999999999999999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		got := translate(query)
		if again := translate(got); again != got && !strings.Contains(strings.ToLower(query), "indexed") {
			t.Errorf("%q: %q, and again %q", query, got, again)
		}
		if left := opaqueText.ReplaceAllString(got, ""); strings.Contains(left, "?") {
			t.Errorf("%q: %q has a parameter left", query, got)
		}
		before, after := opaqueText.FindAllString(query, -1), opaqueText.FindAllString(got, -1)
		if strings.Join(before, "") != strings.Join(after, "") {
			t.Errorf("%q: %q, strings or comments were changed", query, got)
		}
	})
}

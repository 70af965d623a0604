package query_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	_ "modernc.org/sqlite"
	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/search/query"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a":                   "a",
		"a b":                 "a AND b",
		"a AND b c":           "a AND b AND c",
		"a OR b c":            "a OR (b AND c)",
		"a b OR c":            "(a AND b) OR c",
		"NOT a b":             "NOT a AND b",
		"NOT (a b)":           "NOT (a AND b)",
		"(a OR (b))":          "a OR b",
		"a (b c)":             "a AND b AND c",
		"((a OR b) OR c)":     "a OR b OR c",
		"a a a* a*":           "a AND a*", //nolint:dupword // once is enough
		`"a b"* c`:            `"a b"* AND c`,
		`"AND" and`:           `"AND" AND and`,
		"* ** a***":           "* AND a*",
		"rye/core/registry -": "rye/core/registry",
		"(a)b":                "a AND b",
		`a"b c"d`:             `a AND "b c" AND d`,
		"a && b || c":         "a AND b AND c",
	} {
		n, err := query.Parse(text)
		if err != nil || n.String() != want {
			t.Errorf("%q is %s (%v), want %s", text, n, err, want)
		}
	}
}

func TestTerms(t *testing.T) {
	t.Parallel()
	n, err := query.Parse(`a NOT b (c OR NOT d) "e f" a`)
	if err != nil {
		t.Fatal(err)
	}
	var terms []string
	for _, term := range n.Terms() {
		terms = append(terms, term.String())
	}
	if got := strings.Join(terms, " "); got != `a c "e f"` {
		t.Errorf("terms %s", got)
	}
}

// The position of an error is where somebody has to look.
func TestErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a (b":                         "position 2, before \"(b\"",
		"a OR":                         "at its end (position 4)",
		strings.Repeat("é ", 9) + `"`:  "position 27, before \"\\\"\"",
		"x" + strings.Repeat(" (", 20): "nested deeper",
	} {
		_, err := query.Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// bombs are queries that would be expensive.
func bombs() map[string]string {
	words := func(n int, word func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(word(i) + " ")
		}
		return b.String()
	}
	letters := func(i int) string {
		return string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676%26))
	}
	return map[string]string{
		"open parentheses":   strings.Repeat("(", 100_000),
		"closed parentheses": strings.Repeat(")", 100_000),
		"pairs":              strings.Repeat("(", 50_000) + "a" + strings.Repeat(")", 50_000),
		"shorter pairs":      strings.Repeat("(", 2000) + "a" + strings.Repeat(")", 2000),
		"a million words":    words(1_000_000, letters),
		"different words":    words(1000, letters),
		"many a*":            strings.Repeat("a* ", 1300),
		"different prefixes": words(800, func(i int) string { return letters(i) + "*" }),
		"nots":               strings.Repeat("NOT ", 1000) + "a",
		"ors":                strings.Repeat("a OR ", 800) + "a",
		"groups":             strings.Repeat("(a OR b) ", 450),
		"phrase":             `"` + strings.Repeat("a ", 2000) + `"`,
		"quotes":             strings.Repeat(`"`, 4000),
		"stars":              strings.Repeat("*", 4000),
		"null bytes":         strings.Repeat("\x00", 4000),
		"not UTF-8":          strings.Repeat("\xff\xfe", 2000),
	}
}

// TestAttackQueryBomb: a query of 100 000 parentheses, a million words or thousands of beginnings of words is meant to hold up search.
// It is refused with the position that is too much, or costs no more than 64 words.
func TestAttackQueryBomb(t *testing.T) {
	t.Parallel()
	db := database(t)
	for name, text := range bombs() {
		n, err := query.Parse(text)
		if err != nil {
			if bad, ok := errors.AsType[*query.Error](err); !ok || len(err.Error()) > 500 || len(bad.Query) > query.MaxBytes {
				t.Errorf("%s: error of %d bytes", name, len(err.Error()))
			}
			continue
		}
		if terms := len(n.Terms()); terms > query.MaxTerms {
			t.Errorf("%s: %d terms", name, terms)
		}
		if _, err := matches(db, query.Matcher{Near: 5}.Match(n)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// database is an index of a few documents.
func database(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file::memory:")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := db.Exec(`CREATE VIRTUAL TABLE words USING fts5 (title, body, every, content = '', contentless_delete = 1)`); err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"a b c", "b c d", "", "a d e f g h"} {
		if _, err := db.Exec("INSERT INTO words (title, body, every) VALUES ('t', ?, ?)", body, query.Everything); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

func matches(db *sql.DB, expression string) (n int, err error) {
	return n, db.QueryRow("SELECT count(*) FROM words WHERE words MATCH ?", expression).Scan(&n)
}

// node draws a query as the parser would make it.
func node(depth int) *rapid.Generator[query.Node] {
	return rapid.Custom(func(r *rapid.T) query.Node {
		term := query.Node{
			Op: query.Term, Text: rapid.SampledFrom([]string{"a", "b", "c", "d", "ü", "and"}).Draw(r, "word"),
			Prefix: rapid.Bool().Draw(r, "prefix"),
		}
		if rapid.Bool().Draw(r, "quoted") {
			term.Quoted, term.Text = true, term.Text+rapid.SampledFrom([]string{"", " AND", " b", "("}).Draw(r, "rest")
		}
		if depth == 0 {
			return term
		}
		op := rapid.SampledFrom([]query.Op{query.All, query.Term, query.And, query.Or, query.Not}).Draw(r, "op")
		switch op {
		case query.All:
			return query.Node{}
		case query.Not:
			return query.Node{Op: op, Of: []query.Node{node(depth-1).Draw(r, "of")}}
		case query.And, query.Or:
			return query.Node{Op: op, Of: rapid.SliceOfN(node(depth-1), 2, 3).Draw(r, "of")}
		default:
			return term
		}
	})
}

// Each query that can be written is read as what it says.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		text := node(3).Draw(r, "query").String()
		once, err := query.Parse(text)
		if err != nil {
			r.Fatalf("%s: %v", text, err)
		}
		twice, err := query.Parse(once.String())
		if err != nil || !twice.Equal(once) {
			r.Fatalf("%s is %s, which is %s (%v)", text, once, twice, err)
		}
	})
}

// Each query that is accepted is one to FTS5, however it is to match.
func TestEveryQueryIsOneToTheDatabase(t *testing.T) {
	t.Parallel()
	db := database(t)
	rapid.Check(t, func(r *rapid.T) {
		n := node(4).Draw(r, "query")
		m := query.Matcher{Near: rapid.IntRange(0, 3).Draw(r, "near")}
		if rapid.Bool().Draw(r, "columns") {
			m.Columns = []string{"title", "body"}
		}
		if rapid.Bool().Draw(r, "spellings") {
			m.Spellings = func(word string) []string { return []string{word + "x", "b", `quo"te`} }
		}
		if _, err := matches(db, m.Match(n)); err != nil {
			r.Fatalf("%s is %s: %v", n, m.Match(n), err)
		}
	})
}

// FuzzParse reads any text. A query is one again when it is written.
func FuzzParse(f *testing.F) {
	for _, text := range bombs() {
		f.Add(text[:min(len(text), 5000)])
	}
	for _, text := range []string{`a OR (b "c d"*) NOT e*`, "NEAR(a b)", "{title} : a", "^a + b", "a:b", "\x00\"", "(((a)))", "𝔘 ß İ"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := query.Parse(text)
		if err != nil {
			if bad, ok := errors.AsType[*query.Error](err); !ok || bad.Pos < 0 || bad.Pos > len(text) || bad.Reason == "" {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		again, err := query.Parse(n.String())
		if err != nil && len(n.String()) <= query.MaxBytes {
			t.Fatalf("%q is %q, which is none: %v", text, n, err)
		}
		if err == nil && !again.Equal(n) {
			t.Fatalf("%q is %q, which is %q", text, n, again)
		}
		if expression := (query.Matcher{Near: 3, Columns: []string{"body"}}).Match(n); len(expression) > 100*query.MaxBytes {
			t.Fatalf("%q takes %d bytes", text, len(expression))
		}
	})
}

// In scripts without blanks each character is a word to the index.
func TestApart(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":               "",
		"plain words":    "plain words",
		"検索":             " 検  索 ",
		"GPT4の使い":        "GPT4 の  使  い ",
		"サーバー":           " サ  ー  バ  ー ",
		"한국어 검색":         "한국어 검색",
		"ไทย":            " ไ  ท  ย ",
		"、。":             "、。",
		"Zürich, Ελλάδα": "Zürich, Ελλάδα",
		"𠮷野家 and 々 \xff": " 𠮷  野  家  and  々  \ufffd",
	} {
		if got := query.Apart(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	for text, is := range map[string]bool{"word": true, "検": true, "検索": false, "a検": false, "검색": true, "a b": false, "": false} {
		if query.Word(text) != is {
			t.Errorf("%q is one word: %t", text, !is)
		}
	}
}

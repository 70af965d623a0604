package sqlstore

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// rule is something that one of the engines does not understand, or understands in a way
// of its own.
type rule struct {
	name    string
	instead string
	breaks  func(sql string) bool
	bad     string // breaks it
	good    string // does not
}

func pattern(expr string) func(string) bool { return regexp.MustCompile(expr).MatchString }

// rules are about the text of statements, in which keywords are upper case and names
// lower case.
var rules = []rule{
	{"iif", "CASE WHEN", pattern(`\biif\(`), "SELECT iif(a, 1, 2)", "SELECT CASE WHEN a = 1 THEN 1 ELSE 2 END"},
	{"max or min of several values", "CASE WHEN", scalarMax, "SET a = max(0, b - (c))", "SELECT max(a), min((b + c)), max(count(a, b))"},
	{"IN a table", "IN (SELECT column FROM table)", pattern(`\bIN [a-z]`), "WHERE id IN subtree", "WHERE id IN (SELECT id FROM subtree)"},
	{"IS between values", "IS [NOT] DISTINCT FROM", pattern(`\bIS (NOT )?([?(]|[a-z])`), "WHERE a IS NOT ?3", "WHERE a IS NOT NULL AND b IS NOT DISTINCT FROM ?3"},
	{
		"a recursion that begins with values", "begin with a row: the type and collation are those of its column", pattern(`\bAS \(\s*VALUES\b`),
		"WITH RECURSIVE a (id) AS (\n\tVALUES (?)\n\tUNION SELECT 1)", "WITH RECURSIVE a (id) AS (SELECT id FROM t WHERE id = ?)",
	},
	{
		"a recursion that names itself twice", "one recursive term, with OR or IN (a, b)", recursesTwice,
		"WITH RECURSIVE a (id) AS (SELECT 1 UNION SELECT t.x FROM t JOIN a ON t.y = a.id UNION SELECT t.x FROM a JOIN t ON t.z = a.id) SELECT id FROM a",
		"WITH RECURSIVE a (id) AS (SELECT 1 UNION SELECT t.x FROM a JOIN t ON t.y = a.id OR t.z = a.id), b (id) AS (SELECT id FROM a) SELECT id FROM a JOIN b",
	},
	{
		"a derived table without a name", "FROM (SELECT …) AS name", anonymous,
		"SELECT count(*) FROM (SELECT 1 FROM t LIMIT (2)) WHERE x", "SELECT count(*) FROM (SELECT 1 FROM t LIMIT (2)) AS found",
	},
	{
		"a column of an upsert that could be either row's", "table.column or excluded.column", ambiguousUpsert,
		"ON CONFLICT (day) DO UPDATE SET spend = spend + ?2", "ON CONFLICT (day) DO UPDATE SET spend = days.spend + ?2, gone = CASE WHEN days.gone < ?2 THEN ?2 ELSE excluded.gone END",
	},
	{
		"a sum of conditions", "count(*) FILTER (WHERE …)", pattern(`\b(sum|total)\([a-z_. ]+[=<>]`), "SELECT sum(status = 'error')", "SELECT count(*) FILTER (WHERE a = 1), sum(a + b)",
	},
	{
		"a parameter whose type nothing tells", "CAST(? AS BIGINT) or CAST(? AS TEXT)",
		pattern(`\bSELECT \?|\?\d* [-+*/] \?|\bTHEN \?\d* END|\bcoalesce\(\?\d*\)|\?\d* IS (NOT )?NULL`),
		"CASE WHEN a = 1 THEN ?1 END", "CASE WHEN a < ?1 THEN CAST(?1 AS BIGINT) END",
	},
	{"a cast to an integer of unknown width", "BIGINT", pattern(`\bAS (INTEGER|INT)\)`), "CAST(a AS INTEGER)", "CAST(a AS BIGINT)"},
	{
		"a word of SQLite's alone", "a method of Dialect",
		pattern(`\bPRAGMA\b|\bsqlite_|\bGLOB\b|\bLIKE\b|\bCOLLATE\b|\bINSERT OR\b|\bREPLACE INTO\b|->` +
			`|\bjson_(extract|type|set|remove|object|array|valid)\b|\b(ifnull|group_concat|unixepoch|strftime|datetime|typeof|instr|printf|hex|last_insert_rowid)\(`),
		"SELECT json_extract(metadata, '$.a')", "SELECT value FROM json_each(?)",
	},
	{
		"a word of PostgreSQL's alone", "a method of Dialect",
		pattern(`::|\bILIKE\b|\bARRAY\[|\bFOR (NO KEY )?(UPDATE|SHARE)\b|\bLATERAL\b|\bDISTINCT ON\b|\b(greatest|least|now|to_timestamp|jsonb_\w+)\(`),
		"SELECT greatest(a, b)", "SELECT DISTINCT a",
	},
}

// exempt are files whose statements are one engine's.
var exempt = map[string]bool{"dialect.go": true}

// TestStatementsArePortable holds what is written in this package to the words that both
// engines have.
func TestStatementsArePortable(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	statements := 0
	for _, name := range files {
		if exempt[name] || strings.HasSuffix(name, "_test.go") {
			continue
		}
		positions := token.NewFileSet()
		file, err := parser.ParseFile(positions, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			sql, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(sql, "SELECT") || strings.Contains(sql, "UPDATE") {
				statements++
			}
			for _, r := range rules {
				if r.breaks(sql) {
					t.Errorf("%s has %s; write %s:\n%s", positions.Position(literal.Pos()), r.name, r.instead, sql)
				}
			}
			return true
		})
	}
	if statements < 100 {
		t.Errorf("only %d statements were found", statements)
	}
}

// TestRulesOfStatements shows that each rule finds what it is about, and no more.
func TestRulesOfStatements(t *testing.T) {
	t.Parallel()
	for _, r := range rules {
		if !r.breaks(r.bad) {
			t.Errorf("%s is not found in %q", r.name, r.bad)
		}
		if r.breaks(r.good) {
			t.Errorf("%s is found in %q", r.name, r.good)
		}
	}
}

// inside is the text up to the parenthesis that closes the one before it, and what follows;
// all of it where none does.
func inside(sql string) (body, rest string) {
	depth := 1
	for i, c := range sql {
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return sql[:i], sql[i+1:]
			}
		}
	}
	return sql, ""
}

// outer is a text without what is in parentheses.
func outer(sql string) string {
	var b strings.Builder
	depth := 0
	for _, c := range sql {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case depth == 0:
			b.WriteRune(c)
		}
	}
	return b.String()
}

func scalarMax(sql string) bool {
	for _, at := range regexp.MustCompile(`\b(max|min)\(`).FindAllStringIndex(sql, -1) {
		if body, _ := inside(sql[at[1]:]); strings.Contains(outer(body), ",") {
			return true
		}
	}
	return false
}

func recursesTwice(sql string) bool {
	for _, at := range regexp.MustCompile(`(\w+)( \([^()]*\))? AS (MATERIALIZED )?\(`).FindAllStringSubmatchIndex(sql, -1) {
		name := sql[at[2]:at[3]]
		body, _ := inside(sql[at[1]:])
		if len(regexp.MustCompile(`\b(FROM|JOIN) `+name+`\b`).FindAllString(body, -1)) > 1 {
			return true
		}
	}
	return false
}

func anonymous(sql string) bool {
	sql = strings.ReplaceAll(sql, "DISTINCT FROM", "DISTINCT")
	for _, at := range regexp.MustCompile(`\b(FROM|JOIN) \(`).FindAllStringIndex(sql, -1) {
		_, rest := inside(sql[at[1]:])
		if rest != "" && !regexp.MustCompile(`^\s+(AS )?[a-z]`).MatchString(rest) {
			return true
		}
	}
	return false
}

func ambiguousUpsert(sql string) bool {
	_, set, upserts := strings.Cut(sql, "DO UPDATE SET")
	if !upserts {
		return false
	}
	for assignment := range strings.SplitSeq(set, ",") {
		_, value, _ := strings.Cut(assignment, "=")
		for _, name := range regexp.MustCompile(`[a-z_][a-z_.]*`).FindAllString(value, -1) {
			if !strings.Contains(name, ".") {
				return true
			}
		}
	}
	return false
}

package constant_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/constant"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// The .json files hold what the interpreters make of the sources. For Python:
// json.dumps of the module's variables after exec.
func TestEveryForm(t *testing.T) {
	t.Parallel()
	for file, read := range map[string]func(string, ...string) map[string]constant.Constant{
		"traps.py": constant.Python, "traps.ts": constant.JavaScript,
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			src, want := testdata(t, file), map[string]any{}
			if err := json.Unmarshal([]byte(testdata(t, file+".json")), &want); err != nil {
				t.Fatal(err)
			}
			for _, src := range []string{src, src + "\n", strings.ReplaceAll(src, "\n    ", "\n\t")} {
				table := read(src, words.FindAllString(src, -1)...)
				for name, value := range want {
					c, bound := table[name]
					if got := plain(t, c.Value); !bound || c.Reason != "" || !reflect.DeepEqual(got, value) {
						t.Errorf("%s (line %d): got %#v (%s), want %#v", name, c.Line, got, c.Reason, value)
					}
				}
				for name, c := range table {
					if _, known := want[name]; !known && c.Reason == "" {
						t.Errorf("%s should have no value, has %v", name, c.Value)
					}
				}
			}
		})
	}
}

// words are names that a text may bind.
var words = regexp.MustCompile(`[A-Za-z_]\w*`)

func testdata(t *testing.T, file string) string {
	t.Helper()
	src, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(src)
}

// plain is a value as JSON has it.
func plain(t *testing.T, v any) any {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// A value that is not constant is not guessed, and the reason says why.
func TestUnknown(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		src, reason string
		line        int
	}{
		"import":              {"from rye.tool import A, X\n\nS = {'enum': X}", "uses X, which is imported on line 1", 3},
		"import under a name": {"import os as X\nS = [X]", "uses X, which is imported on line 1", 2},
		"import of all":       {"S = 1\nfrom a.b import *", "may be imported on line 2", 1},
		"never bound":         {"S = X", "uses X, which no line before it binds", 1},
		"bound later":         {"S = X; X = 1", "uses X, which no line before it binds", 1},
		"call":                {"S = build()", "calls build()", 1},
		"method":              {"S = 'a'.strip()", "makes a call", 1},
		"attribute":           {"S = os.sep", "takes a part of a value", 1},
		"part":                {"X = [1]\nS = X[0]", "takes a part of a value", 2},
		"part of a literal":   {"S = [1][0]", "takes a part of a value", 1},
		"through a name":      {"X = f()\nS = [X]", "uses X, which calls f()", 2},
		"condition":           {"S = 1 if a else 2", "depends on a condition", 1},
		"or":                  {"S = None or 1", "uses the operator or", 1},
		"comprehension":       {"X = [1]\nS = [1 for x in X]", "is built by a comprehension", 2},
		"lambda":              {"S = lambda: 1", "is a function", 1},
		"not":                 {"S = not True", "uses the operator not", 1},
		"operator":            {"S = 2 * 3", "uses the operator *", 1},
		"sign of a name":      {"X = 1\nS = -X", "uses the operator -", 2},
		"sum of numbers":      {"S = 1 + 2", "adds something else than texts or lists", 1},
		"sum of two kinds":    {"S = 'a' + ['b']", "adds something else than texts or lists", 1},
		"set":                 {"S = {1, 2}", "is not written as a constant: got ',', want ':'", 1},
		"key":                 {"S = {1: 2}", "has a key that is no text", 1},
		"bytes":               {"S = [rb'a']", "has bytes, which JSON has no form for", 1},
		"f-string":            {"S = f'{a}'", "has a text with values in it (f'{a}')", 1},
		"named character":     {`S = "\N{BULLET}"`, "is not written as a constant: invalid escape sequence \\N", 1},
		"half a pair":         {`S = "\ud83d"`, "is not written as a constant: invalid Unicode code point U+D83D", 1},
		"escape cut off":      {`S = "\x4"`, "is not written as a constant: truncated escape sequence \\x4", 1},
		"complex":             {"S = 1j", "is not written as a constant: got identifier, want ')'", 1},
		"infinite":            {"S = 1e999", "is not written as a constant: invalid float literal", 1},
		"old octal":           {"S = 0777", "is not written as a constant: obsolete form of octal literal; use 0o777", 1},
		"spread of a text":    {"S = [*'ab']", "spreads something else than a list", 1},
		"spread of a list":    {"S = {**[1]}", "spreads something else than a mapping", 1},
		"never closed":        {"S = [1,\n2 = 2", "is not written as a constant: got '=', want ']'", 1},
		"text never closed":   {"S = 'a\n", "cannot be read at 'a", 1},
		"changed by index":    {"S = {}\nS['a'] = 1", "is bound or changed on line 2", 1},
		"changed by method":   {"S = []\n\nS.append(1)", "is bound or changed on line 3", 1},
		"changed by +=":       {"S = []\nS += [1]", "is bound or changed on line 2", 1},
		"changed by del":      {"S = {'a': 1}\ndel S['a']", "is bound or changed on line 2", 1},
		"part changed":        {"X = []\nS = {'a': [X]}\nX.append(1)", "uses X, which is bound or changed on line 3", 2},
		"changed as another":  {"S = X = []\nX.append(1)", "is bound or changed on line 2", 1},
		"shared, and rebound": {"X = []; S = X; A = X; B = 2\nX = 1\nA.append(1)", "uses X, which is bound again on line 2", 1},
		"whole changed":       {"S = []\nX = {'a': S}\nX['a'].append(1)", "is bound or changed on line 3", 1},
		"changed on the way":  {"S = [1]\nX = S.pop()", "is bound or changed on line 2", 1},
		"behind a semicolon":  {"if a: x = 1; S = 2", "is bound or changed on line 1", 1},
		"bound by a loop":     {"S = 1\nfor a, S in b: pass", "is bound or changed on line 2", 1},
		"of several":          {"S = 1\n(a, S) = f()", "is bound or changed on line 2", 1},
		"match":               {"S = 1\nmatch a:\n  case S: pass", "is bound or changed on line 3", 1},
		"closed too often":    {"S = 'a') + ('b'", "is not written as a constant: it closes what it does not open", 1},
		"tuple of names":      {"S, X = 1, 2", "is bound or changed on line 1", 1},
		"walrus":              {"f(S := 1)", "is bound or changed on line 1", 1},
		"in a block":          {"S = 1\nif a:\n    S = 2", "is bound or changed on line 3", 1},
		"block on a line":     {"try: S = 2\nexcept E: pass", "is bound or changed on line 1", 1},
		"loop":                {"S = 1\nfor S in a:\n\tpass", "is bound or changed on line 2", 1},
		"with":                {"with a() as S:\n\tpass", "is bound or changed on line 1", 1},
		"with in brackets":    {"with (a() as S):\n\tpass", "is bound or changed on line 1", 1},
		"import in a block":   {"S = 1\ntry:\n\tfrom a import S\nexcept E: pass", "is imported on line 3", 1},
		"function":            {"S = 1\ndef S(): pass", "is bound or changed on line 2", 1},
		"class":               {"class S: pass", "is bound or changed on line 1", 1},
		"behind an import":    {"S = 1; import a; S = f()", "is bound again on line 1", 1},
		"brackets crossed":    {"S = [(1])", "is not written as a constant: got ']', want ')'", 1},
		"bound twice":         {"S = 1\nS = f()", "is bound again on line 2", 2},
		"chain with a part":   {"S = X.a = 1", "is not written as a constant: got '=', want ')'", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c := constant.Python(tt.src, "S")["S"]; c.Reason != tt.reason || c.Line != tt.line || c.Value != nil {
				t.Errorf("line %d, %q, want line %d, %q; value %v", c.Line, c.Reason, tt.line, tt.reason, c.Value)
			}
		})
	}
}

func TestUnknownInJavaScript(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		src, reason string
		line        int
	}{
		"import":             {"import {X as Y, Z} from './x'\nconst S = [...Z]", "uses Z, which is imported on line 1", 2},
		"require":            {"const S = require('x')", "calls require()", 1},
		"pattern":            {"const {S, T = 1} = require('x')", "is bound or changed on line 1", 1},
		"member":             {"const S = Color.Red", "takes a part of a value", 1},
		"frozen":             {"const S = Object.freeze({})", "makes a call", 1},
		"template":           {"const a = 1\nconst S = `x${a}`", "cannot be read at `x${", 2},
		"arrow":              {"const S = () => 1", "is a function", 1},
		"arrow of one":       {"const S = x => 1", "is a function", 1},
		"method":             {"const S = {run() {}}", "has a method", 1},
		"prototype":          {"const S = {__proto__: null}", "sets a prototype", 1},
		"sum of lists":       {"const S = [1] + [2]", "adds something else than texts or lists", 1},
		"big":                {"const S = 10n", "is not written as a constant: got identifier, want ')'", 1},
		"old number":         {"const S = 0777", "is not written as a constant: obsolete form of octal literal; use 0o777", 1},
		"hash":               {"const S = 1#", "cannot be read at #", 1},
		"nested templates":   {"const S = " + strings.Repeat("`${", 1000), "cannot be read at `${", 1},
		"text over lines":    {"const S = 'a\\\n\n'", "cannot be read", 1},
		"hole":               {"const S = [1,,2]", "is not written as a constant: got ',', want primary expression", 1},
		"undefined":          {"const S = {a: undefined}", "uses undefined", 1},
		"regular expression": {"const S = /a'b/", "cannot be read at /a'b/", 1},
		"condition":          {"const S = true ? 1 : 2", "depends on a condition", 1},
		"continued":          {"const S = 1\n[0].x()", "makes a call", 1},
		"half a pair":        {`const S = "\ud83d"`, "is not written as a constant: invalid Unicode code point U+D83D", 1},
		"broken pair":        {`const S = "\ud83d\udczz"`, "is not written as a constant", 1},
		"old octal":          {`const S = "\1"`, "is not written as a constant: invalid escape sequence \\N", 1},
		"changed":            {"let S = {}\nS.a = 1", "is bound or changed on line 2", 1},
		"pushed to":          {"const X = []\nconst S = {x: X}\nX.push(1)", "uses X, which is bound or changed on line 3", 2},
		"counted":            {"let S = 1\nS++", "is bound or changed on line 2", 1},
		"in a block":         {"let S = 1\nif (a) { S = 2 }", "is bound or changed on line 2", 1},
		"behind an if":       {"let S = 1\nif (a)\n  S = 2", "is bound or changed on line 3", 1},
		"exports in a block": {"if (a)\n  exports.S = 2", "is bound or changed on line 2", 2},
		"cast of an object":  {"const S = <Foo>{a: 1}", "is not written as a constant", 1},
		"function's object":  {"const S = () => {a: 1}", "is a function", 1},
		"in a block, behind": {"if (a) { f(); const S = 1 }", "is bound or changed on line 1", 1},
		"taken apart":        {"const S = [1]\nconst { A, S: B, S } = f()", "is bound or changed on line 2", 1},
		"declared only":      {"let S", "is bound or changed on line 1", 1},
		"function":           {"export async function S() {}", "is bound or changed on line 1", 1},
		"bound by the way":   {"let S = 1\nconst X = S = 2", "is bound or changed on line 2", 1},
		"commas":             {"const S = (1, 2)", "is not written as a constant", 1},
		"no comma":           {"const S = [1 2]", "is not written as a constant: got int literal, want ']'", 1},
		"brackets crossed":   {"const S = [(1])", "is not written as a constant: got ']', want ')'", 1},
		"non-null":           {"const X = 1\nconst S = X!", "is not written as a constant: unexpected input character '!'", 2},
		"type and operator":  {"const X = ''\nconst S = X as string || 1", "is not written as a constant: got '|', want primary expression", 2},
		"comment of HTML":    {"const S = 1 <!-- 2", "cannot be read at <!-- 2", 1},
		"within exports":     {"module.exports = {\n S: {a: 1},\n run}", "has its value within module.exports; make it a constant", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := constant.JavaScript(tt.src, "S")["S"]
			if !strings.HasPrefix(c.Reason, tt.reason) || c.Reason == "" || c.Line != tt.line || c.Value != nil {
				t.Errorf("line %d, %q, want line %d, %q; value %v", c.Line, c.Reason, tt.line, tt.reason, c.Value)
			}
		})
	}
}

func TestCommonJS(t *testing.T) {
	t.Parallel()
	table := constant.JavaScript("const X = 'x'\nexports.A = [X]\nmodule.exports.B = {b: 1};\nmodule.exports = { X, run }\n", "A", "B", "X")
	if got, want := []any{table["A"].Value, table["B"].Value, table["X"].Value},
		[]any{[]any{"x"}, map[string]any{"b": int64(1)}, "x"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A source as large as an item can be is read in moments, whatever is in it: with
// work that grows with its square each of these would take many minutes.
func TestLargeSources(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const lines, tokens = 100_000, 99_000
	var names strings.Builder
	for i := range lines {
		fmt.Fprintf(&names, "A%d = 1\n", i)
	}
	for name, src := range map[string]string{
		"imports of all":   names.String() + strings.Repeat("from a import *\n", lines),
		"shared":           "A = [1]\n" + strings.Repeat("B = A\n", lines) + strings.Repeat("A.x()\n", lines),
		"reasons":          "A = f()\n" + strings.Repeat("A = [A]\n", lines),
		"types":            "const A: X<" + strings.Repeat("a,", tokens/2),
		"types of many":    "const " + strings.Repeat("a as X<,", tokens/4),
		"many declarators": "const " + strings.Repeat("a=1,", tokens/4),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if constant.Python(src, "A", "B") == nil || constant.JavaScript(src, "a") == nil {
				t.Error("no table")
			}
		})
	}
}

// However a source multiplies or nests, what is read of it stays small, and the
// names beside are still read.
func TestBounds(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	chain := func(first, next string, times int) string { // A0 is first, and each of the next is made of the one before; the last is A
		src := "A0 = " + first + "\n"
		for i := range times {
			src += fmt.Sprintf("A%d = %s\n", i+1, strings.ReplaceAll(next, "A", fmt.Sprintf("A%d", i)))
		}
		return src + fmt.Sprintf("A = A%d\n", times)
	}
	double := chain("['"+strings.Repeat("x", 1000)+"']", "[A, A]", 20)
	deepName := chain("[]", "[A]", 100)
	many := strings.Repeat("'a',", 120_000)
	const half, maxTokens = 1 << 20, 100_000
	long := chain("'"+strings.Repeat("x", half/8)+"'", "A + A", 20)
	deep := func(open string) string { return "A = " + strings.Repeat(open, maxTokens/4) + "\n" }
	for name, tt := range map[string]struct {
		src, reason string
		goesOn      bool // what follows is a statement of its own, with room left
	}{
		"doubled lists":      {double, "too large", false},
		"doubled texts":      {long, "too large", false},
		"deep through names": {deepName, "nested more than", true},
		"deep brackets":      {deep("["), "nested more than", false},
		"deep mappings":      {deep("{'a':"), "is too long", false},
		"deep parentheses":   {deep("("), "nested more than", false},
		"signs":              {deep("-"), "excessive nesting", true},
		"negations":          {deep("not "), "excessive nesting", true},
		"plus":               {deep("+"), "excessive nesting", true},
		"spreads":            {"A = [" + strings.Repeat("*", maxTokens/2) + "\n", "not written as a constant", false},
		"many tokens":        {"A = [" + many + "]\n", "is too long", true},
		"many names":         {strings.Repeat("A = ", half/4) + "1\n", "is used too often", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := constant.Python(tt.src+"B = 1\n", "A", "B")
			if a := table["A"]; !strings.Contains(a.Reason, tt.reason) {
				t.Errorf("reason %q, want %q", a.Reason, tt.reason)
			}
			if b := table["B"]; (b.Value == int64(1)) != tt.goesOn {
				t.Errorf("B is %v: %s", b.Value, b.Reason)
			}
			script := strings.ReplaceAll(strings.ReplaceAll(tt.src, "\nA =", "\nvar A ="), "not ", "! ")
			if a := constant.JavaScript("var "+script, "A")["A"]; a.Reason == "" {
				t.Error("JavaScript has a value for it")
			}
		})
	}
}

// The lexer of JavaScript goes through the file for each error, so their number
// is bounded; what stands before them may be changed behind, and has no value.
func TestManyErrors(t *testing.T) {
	t.Parallel()
	table := constant.JavaScript("const A = 1\n"+strings.Repeat("😀", 1<<20), "A")
	if a := table["A"]; !strings.Contains(a.Reason, "cannot be read to its end") || a.Value != nil {
		t.Errorf("A is %v: %s", a.Value, a.Reason)
	}
	table = constant.JavaScript(strings.Repeat("@é #é 😀 '\n", 100)+";\nconst A = 1", "A")
	if a := table["A"]; a.Value != int64(1) {
		t.Errorf("A is %v: %s", a.Value, a.Reason)
	}
}

package artifact

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// keep puts an artifact into dir and returns its reference.
func keep(t testing.TB, dir, content string) string {
	t.Helper()
	sum := sha256.Sum256([]byte(content))
	hash := hex.EncodeToString(sum[:])
	if err := os.WriteFile(filepath.Join(dir, hash+".txt"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return Ref(hash)
}

func call(t testing.TB, dir string, in map[string]any) (*result, *tool.Fault) {
	t.Helper()
	args, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var env tool.Env
	if dir != "" {
		env.Artifacts = Folder(dir)
	}
	out, err := New().Call(t.Context(), env, args)
	if f, ok := errors.AsType[*tool.Fault](err); ok {
		return nil, f
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.(*result), nil
}

func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := keep(t, dir, "één\ntwo\nthree\nfour")
	object := keep(t, dir, `{"data":{"out":"a\nb\nc\n","list":[{"n":1},{"n":12345678901234567890}]},"ok":true}`)
	many := keep(t, dir, `[0,{"n":["<a>"]}]`)
	tests := map[string]struct {
		in   map[string]any
		want result
	}{
		"all":            {map[string]any{"ref": text}, result{Content: "één\ntwo\nthree\nfour", Lines: 4, Characters: 18}},
		"lines":          {map[string]any{"ref": text, "offset": 2, "limit": 2}, result{Content: "two\nthree\n", Lines: 4, Characters: 18, NextOffset: 4, Note: "1 more lines; go on with offset 4"}},
		"last line":      {map[string]any{"ref": text, "offset": 4}, result{Content: "four", Lines: 4, Characters: 18}},
		"characters":     {map[string]any{"ref": text, "unit": "characters", "offset": 2, "limit": 3}, result{Content: "én\n", Lines: 4, Characters: 18, NextOffset: 5, Note: "14 more characters; go on with offset 5"}},
		"matches":        {map[string]any{"ref": text, "pattern": "^t"}, result{Content: "2:two\n3:three\n", Lines: 4, Characters: 18}},
		"one match":      {map[string]any{"ref": text, "pattern": "^t", "limit": 1}, result{Content: "2:two\n", Lines: 4, Characters: 18, NextOffset: 3, Note: "more lines match; go on with offset 3"}},
		"next match":     {map[string]any{"ref": text, "pattern": "^t", "offset": 3}, result{Content: "3:three\n", Lines: 4, Characters: 18}},
		"no match":       {map[string]any{"ref": text, "pattern": "x"}, result{Lines: 4, Characters: 18, Note: "no line matches"}},
		"text of JSON":   {map[string]any{"ref": object, "path": "data.out", "offset": 2}, result{Content: "b\nc\n", Lines: 3, Characters: 6}},
		"member":         {map[string]any{"ref": object, "path": "data.list[1]"}, result{Content: "{\n  \"n\": 12345678901234567890\n}", Lines: 3, Characters: 31}},
		"indented":       {map[string]any{"ref": object, "limit": 2}, result{Content: "{\n  \"data\": {\n", Lines: 14, Characters: 159, NextOffset: 3, Note: "12 more lines; go on with offset 3"}},
		"by whole hash":  {map[string]any{"ref": hashOfText("één\ntwo\nthree\nfour"), "limit": 1}, result{Content: "één\n", Lines: 4, Characters: 18, NextOffset: 2, Note: "3 more lines; go on with offset 2"}},
		"of a list":      {map[string]any{"ref": many, "path": "[1].n"}, result{Content: "[\n  \"<a>\"\n]", Lines: 3, Characters: 11}},
		"grep in member": {map[string]any{"ref": object, "path": "data.out", "pattern": "c"}, result{Content: "3:c\n", Lines: 3, Characters: 6}},
	}
	for name, c := range tests {
		got, fault := call(t, dir, c.in)
		if fault != nil {
			t.Errorf("%s: %v", name, fault)
			continue
		}
		c.want.Ref = c.in["ref"].(string)
		if *got != c.want {
			t.Errorf("%s: %+v\nwant %+v", name, *got, c.want)
		}
	}
}

func hashOfText(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func TestRefused(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	text, binary := keep(t, dir, "text"), keep(t, dir, "PK\x03\x04\x00")
	foreign := keep(t, other, "another thread's")
	link := hashOfText("linked")
	if err := os.Symlink(filepath.Join(other, hashOfText("another thread's")+".txt"), filepath.Join(dir, link+".txt")); err != nil {
		t.Fatal(err)
	}
	swapped := hashOfText("swapped")
	if err := os.WriteFile(filepath.Join(dir, swapped+".txt"), []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, hashOfText("folder")), 0o700); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		dir  string
		in   map[string]any
		code tool.Code
	}{
		"path as reference":     {dir, map[string]any{"ref": "../" + filepath.Base(other)}, tool.CodeBadArguments},
		"short reference":       {dir, map[string]any{"ref": text[:8]}, tool.CodeBadArguments},
		"pattern as reference":  {dir, map[string]any{"ref": "????????????????"}, tool.CodeBadArguments},
		"another thread's":      {dir, map[string]any{"ref": foreign}, tool.CodeNotFound},
		"symbolic link":         {dir, map[string]any{"ref": link}, tool.CodeNotFound},
		"folder":                {dir, map[string]any{"ref": hashOfText("folder")}, tool.CodeNotFound},
		"changed content":       {dir, map[string]any{"ref": swapped}, tool.CodeToolFailed},
		"no artifacts at all":   {filepath.Join(dir, "none"), map[string]any{"ref": text}, tool.CodeNotFound},
		"no thread":             {"", map[string]any{"ref": text}, tool.CodeNotFound},
		"binary":                {dir, map[string]any{"ref": binary}, tool.CodeUnsupported},
		"past the last line":    {dir, map[string]any{"ref": text, "offset": 2}, tool.CodeBadArguments},
		"past the last rune":    {dir, map[string]any{"ref": text, "offset": 5, "unit": "characters"}, tool.CodeBadArguments},
		"bad pattern":           {dir, map[string]any{"ref": text, "pattern": "("}, tool.CodeBadArguments},
		"path in what is text":  {dir, map[string]any{"ref": text, "path": "a"}, tool.CodeBadArguments},
		"path in two values":    {dir, map[string]any{"ref": keep(t, dir, "{\"a\":1}\n{\"a\":2}"), "path": "a"}, tool.CodeBadArguments},
		"path that leads away":  {dir, map[string]any{"ref": keep(t, dir, `{"a":1}`), "path": "b"}, tool.CodeNotFound},
		"undeclared parameters": {dir, map[string]any{"ref": text, "file": "x"}, tool.CodeBadArguments},
	}
	for name, c := range tests {
		if got, fault := call(t, c.dir, c.in); fault == nil || fault.Code != c.code {
			t.Errorf("%s: %+v, %v; want %s", name, got, fault, c.code)
		}
	}
}

// The pages together are the whole, whatever the text and the unit.
func TestPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		line := strings.Repeat(rapid.StringN(1, 30, -1).Draw(rt, "line"), rapid.IntRange(1, 60).Draw(rt, "width"))
		text := strings.Repeat(line+"\n", rapid.IntRange(1, 80).Draw(rt, "count"))
		if trimmed := strings.TrimSpace(text); strings.ContainsRune(text, 0) || trimmed == "" || json.Valid([]byte(text)) {
			return
		}
		in := map[string]any{"ref": keep(t, dir, text), "unit": rapid.SampledFrom([]string{unitLines, unitCharacters}).Draw(rt, "unit")}
		var all strings.Builder
		for {
			page, fault := call(t, dir, in)
			if fault != nil {
				rt.Fatal(fault.Message)
			}
			encoded, err := json.Marshal(page)
			if err != nil || utf8.RuneCount(encoded) > 24_000 {
				rt.Fatalf("a page of %d characters, %v", len(encoded), err)
			}
			all.WriteString(page.Content)
			if page.NextOffset == 0 {
				break
			}
			in["offset"] = page.NextOffset
		}
		if all.String() != text {
			rt.Fatalf("the pages have %s of %d bytes", strconv.Itoa(all.Len()), len(text))
		}
	})
}

// Deep JSON is not indented: with all the space before its lines it would be
// thousands of times as long.
func TestDeepJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const deep = 5_000
	text := strings.Repeat("[", deep) + strings.Repeat("1,", 100_000) + "1" + strings.Repeat("]", deep)
	for path, want := range map[string]int{"": len(text), "[0][0]": len(text) - 4} {
		page, fault := call(t, dir, map[string]any{"ref": keep(t, dir, text), "path": path, "unit": unitCharacters})
		if fault != nil || page.Characters != want || page.Lines != 1 {
			t.Errorf("%q: %+v, %v", path, page, fault)
		}
	}
	page, _ := call(t, dir, map[string]any{"ref": keep(t, dir, `{"a": "[[\"{{"}`)})
	if page.Content != "{\n  \"a\": \"[[\\\"{{\"\n}" {
		t.Errorf("got %s", page.Content)
	}
}

// A line longer than a page is read by characters, from where the answer says.
func TestLongLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ref := keep(t, dir, "é\n"+strings.Repeat("x", 50_000))
	got, _ := call(t, dir, map[string]any{"ref": ref, "offset": 2})
	if got == nil || !strings.HasPrefix(got.Content, "xxx") || got.NextOffset != 0 || !strings.HasSuffix(got.Note, "from offset 3") {
		t.Fatalf("%+v", got)
	}
	ref = keep(t, dir, strings.Repeat("é", 1000)+"needle"+strings.Repeat("ü", 1000))
	want := "1:…" + strings.Repeat("é", 125) + "needle" + strings.Repeat("ü", 369) + "…\n"
	if got, _ = call(t, dir, map[string]any{"ref": ref, "pattern": "needle"}); got == nil || got.Content != want {
		t.Errorf("%+v", got)
	}
	for _, pattern := range []string{"^é{9}", "ü{9}$"} { // at the ends
		if got, _ = call(t, dir, map[string]any{"ref": ref, "pattern": pattern}); got == nil || utf8.RuneCountInString(got.Content) > maxMatch+5 {
			t.Errorf("%+v", got)
		}
	}
	ref = keep(t, dir, "é\n"+strings.Repeat("x", 50_000))
	if got, _ = call(t, dir, map[string]any{"ref": ref, "unit": "characters", "offset": 3, "limit": 2}); got == nil || got.Content != "xx" {
		t.Errorf("%+v", got)
	}
}

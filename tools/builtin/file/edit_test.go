package file

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/protect"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func TestEdit(t *testing.T) {
	t.Parallel()
	// changes name lines by their text.
	type change struct{ from, to, text string }
	cases := []struct {
		name, before string
		changes      []change
		want         string
	}{
		{"one line", "a\nb\nc\n", []change{{"b", "", "B"}}, "a\nB\nc\n"},
		{"one becomes two", "a\nb\nc\n", []change{{"b", "", "B1\nB2\n"}}, "a\nB1\nB2\nc\n"},
		{"delete", "a\nb\nc\n", []change{{"b", "", ""}}, "a\nc\n"},
		{"an empty line", "a\nb\nc\n", []change{{"b", "", "\n"}}, "a\n\nc\n"},
		{"range", "a\nb\nc\nd\n", []change{{"b", "c", "x"}}, "a\nx\nd\n"},
		{"several, out of order", "a\nb\nc\nd\n", []change{{"d", "", "D"}, {"a", "b", "A"}}, "A\nc\nD\n"},
		{"keeps CRLF", "a\r\nb\r\nc\r\n", []change{{"b", "", "x\ny"}}, "a\r\nx\r\ny\r\nc\r\n"},
		{"keeps the byte order mark", "\ufeffa\nb\n", []change{{"\ufeffa", "", "x\ny"}}, "\ufeffx\ny\nb\n"},
		{"byte order mark given", "\ufeffa\nb\n", []change{{"\ufeffa", "", "\ufeffx"}}, "\ufeffx\nb\n"},
		{"byte order mark of a line that goes", "\ufeffa\nb\n", []change{{"\ufeffa", "", ""}}, "\ufeffb\n"},
		{"all lines go", "\ufeffa\nb\n", []change{{"\ufeffa", "b", ""}}, ""},
		{"CRLF given", "a\nb\n", []change{{"b", "", "x\r\ny\r\n"}}, "a\nx\ny\n"},
		{"mixed endings stay", "a\r\nb\nc\r\n", []change{{"b", "", "x"}}, "a\r\nx\nc\r\n"},
		{"no final newline", "a\nb", []change{{"b", "", "x\ny\n"}}, "a\nx\ny"},
		{"no final newline, last deleted", "a\nb\nc", []change{{"c", "", ""}}, "a\nb"},
		{"no final newline, CRLF", "a\r\nb", []change{{"b", "", "x\ny"}}, "a\r\nx\r\ny"},
		{"only line", "a", []change{{"a", "", "b"}}, "b"},
		{"everything", "a\nb\n", []change{{"a", "b", ""}}, ""},
		{"bytes that are not UTF-8", "a\n\xe9\xff\nb\n", []change{{"b", "", "x"}}, "a\n\xe9\xff\nx\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.put("f", c.before)
			ids := b.ids("f")
			var changes []in
			for _, ch := range c.changes {
				if ch.to == "" {
					changes = append(changes, in{"line_id": ids[ch.from], "new_content": ch.text})
				} else {
					changes = append(changes, in{"start_line_id": ids[ch.from], "end_line_id": ids[ch.to], "new_content": ch.text})
				}
			}
			r := do[editResult](b, "edit_lines", in{"path": "f", "changes": changes})
			if got := b.content("f"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if want := len(splitLines([]byte(c.want))); r.TotalLines != want || len(r.Changed) != len(c.changes) {
				t.Errorf("result %+v, want %d lines", r, want)
			}
		})
	}
}

func TestEditShowsNewIDs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("f", "a\nb\nc\n")
	r := do[editResult](b, "edit_lines", in{"path": "f", "changes": []in{{"line_id": "2:" + b.ids("f")["b"], "new_content": "x\ny"}}})
	part := r.Changed[0]
	if part.StartLine != 2 || part.Lines != 2 || !strings.HasPrefix(part.Content, "2:") {
		t.Fatalf("got %+v", part)
	}
	now := b.ids("f")
	for _, line := range []string{"x", "y"} {
		if !strings.Contains(part.Content, ":"+now[line]+"|"+line+"\n") {
			t.Errorf("%q does not show %s as %s", part.Content, line, now[line])
		}
	}
}

func TestEditRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("f", "a\nb\nc\n")
	ids := b.ids("f")
	a, bb, c := ids["a"], ids["b"], ids["c"]
	refused := func(code tool.Code, words string, changes ...in) map[string]any {
		t.Helper()
		return b.refuse("edit_lines", in{"path": "f", "changes": append([]in{}, changes...)}, code, words)
	}
	details := refused(tool.CodeStaleLine, "read", in{"line_id": "ffffff", "new_content": "x"}, in{"line_id": a, "new_content": "x"})
	if stale, _ := details["stale_ids"].([]string); len(stale) != 1 || stale[0] != "ffffff" {
		t.Errorf("details %v", details)
	}
	refused(tool.CodeBadArguments, "empty")
	refused(tool.CodeBadArguments, "needs", in{"new_content": "x"})
	refused(tool.CodeBadArguments, "needs", in{"start_line_id": a, "new_content": "x"})
	refused(tool.CodeBadArguments, "needs", in{"line_id": a, "end_line_id": bb, "new_content": "x"})
	refused(tool.CodeBadArguments, "new_content", in{"line_id": a})
	refused(tool.CodeBadArguments, "after its end", in{"start_line_id": c, "end_line_id": a, "new_content": "x"})
	refused(tool.CodeBadArguments, "changes[1] and changes[0] both replace line 2",
		in{"start_line_id": bb, "end_line_id": c, "new_content": "x"}, in{"start_line_id": a, "end_line_id": bb, "new_content": "x"})
	refused(tool.CodeBadArguments, "both replace line 1", in{"line_id": a, "new_content": "x"}, in{"line_id": a, "new_content": "y"})
	b.refuse("edit_lines", in{"path": "none", "changes": []in{{"line_id": a, "new_content": ""}}}, tool.CodeNotFound, "rye/file-system/write")
	if got := b.content("f"); got != "a\nb\nc\n" {
		t.Errorf("a refused edit wrote %q", got)
	}
	// An id stays refused after its line has changed, however often it is tried.
	do[editResult](b, "edit_lines", in{"path": "f", "changes": []in{{"line_id": a, "new_content": "A"}}})
	refused(tool.CodeStaleLine, a, in{"line_id": a, "new_content": "x"})
}

// An edit by another process between reading and replacing is not undone.
func TestEditSeesForeignChange(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("f", "a\n")
	p, err := (&space{}).open(tool.Env{Project: b.dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	pl, err := p.find("f", protect.Writing)
	if err != nil {
		t.Fatal(err)
	}
	defer pl.Close()
	doc, err := p.load(pl)
	if err != nil {
		t.Fatal(err)
	}
	if err := pl.unchanged(doc); err != nil {
		t.Errorf("unchanged: %v", err)
	}
	for _, content := range []string{"b\n", "longer\n"} {
		b.put("f", content)
		if f := tool.AsFault(pl.unchanged(doc)); f == nil || f.Code != tool.CodeStaleLine {
			t.Errorf("%q: got %v", content, f)
		}
	}
	if err := os.Remove(filepath.Join(b.dir, "f")); err != nil {
		t.Fatal(err)
	}
	if f := tool.AsFault(pl.unchanged(doc)); f == nil || f.Code != tool.CodeNotFound {
		t.Errorf("removed: got %v", f)
	}
}

// Replacing any range by its own text leaves the file as it was.
func TestEditByOwnTextChangesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		data := []byte(strings.ReplaceAll(text().Draw(t, "text"), "\r", ""))
		doc := &document{rel: "f", data: data, lines: splitLines(data), shown: splitLines(data)}
		doc.ids = lineIDs(doc.lines)
		if len(doc.lines) == 0 {
			return
		}
		from := rapid.IntRange(0, len(doc.lines)-1).Draw(t, "from")
		to := rapid.IntRange(from, len(doc.lines)-1).Draw(t, "to")
		own := join(doc.lines[from : to+1])
		if len(own) == 0 {
			return
		}
		spans, err := doc.locate([]editChange{{StartLineID: doc.ids[from], EndLineID: doc.ids[to], NewContent: string(own)}})
		if err != nil {
			t.Fatal(err)
		}
		after, _ := doc.apply(spans)
		if !bytes.Equal(join(after), data) {
			t.Fatalf("%q became %q", data, join(after))
		}
	})
}

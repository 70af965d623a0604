package memory_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/memory"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	entries "github.com/rye-mcp/rye-mcp/tools/builtin/memory"
)

func (s *scene) export() []byte {
	s.t.Helper()
	all, err := s.Export(s.t.Context(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	var b bytes.Buffer
	if err := memory.WriteMarkdown(&b, "Memory", all.Entries); err != nil {
		s.t.Fatal(err)
	}
	return b.Bytes()
}

func (s *scene) bring(data []byte) memory.Brought {
	s.t.Helper()
	parsed, err := memory.ParseMarkdown(data)
	if err != nil {
		s.t.Fatal(err)
	}
	done, err := s.Bring(s.t.Context(), parsed)
	if err != nil {
		s.t.Fatal(err)
	}
	return done
}

func TestMarkdownThereAndBack(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	a := s.write(threadWriter("one"), entries.Decision, "Old", "## decision: no entry\n<!-- {\"key\":\"x\"} -->\n\\## so\n\nlast")
	s.write(person(), entries.Constraint, "New --> <b>", "the new one holds", a.Key)
	s.Returned = returns("three", "returned: 3")
	if _, err := s.IndexThread(t.Context(), person(), "three"); err != nil {
		t.Fatal(err)
	}
	file := s.export()
	if done := s.bring(file); done != (memory.Brought{Unchanged: 3}) {
		t.Errorf("%+v", done)
	}
	other := newScene(t)
	if done := other.bring(file); done != (memory.Brought{Added: 3}) {
		t.Errorf("%+v", done)
	}
	if !slices.Equal(other.titles(), s.titles()) && len(other.titles()) != 3 {
		t.Errorf("%q, not %q", other.titles(), s.titles())
	}
	e, err := other.Get(t.Context(), a.Key) // the same content has the same key
	if err != nil || e.Text != "## decision: no entry\n<!-- {\"key\":\"x\"} -->\n\\## so\n\nlast" || e.Current() || !strings.Contains(e.Writer().From, "thread one team/one") {
		t.Errorf("%+v %v", e, err)
	}
	// An edit of the file changes the entry, and an added one is the person's.
	edited := strings.Replace(string(file), "the new one holds", "the new one holds twice", 1) + "\n## preference: Tabs\n\nwe use tabs\n"
	if done := s.bring([]byte(edited)); done != (memory.Brought{Added: 1, Changed: 1, Unchanged: 2}) {
		t.Errorf("%+v", done)
	}
	if found := s.recall("tabs"); found.Count != 1 || !strings.Contains(found.Knowledge, `trust="person"`) {
		t.Errorf("%+v", found)
	}
}

// TestMarkdownAgainElsewhere: a file of another project, where its entries have other keys, adds
// nothing at its second import, neither what threads returned, however long, nor history.
func TestMarkdownAgainElsewhere(t *testing.T) {
	t.Parallel()
	from := newScene(t)
	a := from.write(threadWriter("one"), entries.Decision, "Cache", "the cache holds results for one hour")
	b := from.write(person(), entries.Decision, "Cache", "the cache holds results for a day", a.Key)
	c := from.write(person(), entries.Decision, "Cache", "the cache holds results for one hour", b.Key) // as at first
	from.write(person(), entries.Decision, "Cache", "there is no cache", c.Key)
	from.Returned = returns("three", strings.Repeat("returned ", 1000))
	if _, err := from.IndexThread(t.Context(), person(), "three"); err != nil {
		t.Fatal(err)
	}
	file := from.export()
	to := sceneIn(t, filepath.Join(t.TempDir(), "other.db"), place.NewSeal(newKey(t, 2), "there"))
	if done := to.bring(file); done != (memory.Brought{Added: 5}) {
		t.Errorf("%+v", done)
	}
	want := to.titles()
	if current := slices.DeleteFunc(slices.Clone(want), func(title string) bool { return strings.HasPrefix(title, "+") }); len(want) != 5 || len(current) != 2 {
		t.Errorf("%q", want)
	}
	for range 2 {
		if done := to.bring(file); done != (memory.Brought{Folded: 5}) {
			t.Errorf("again: %+v", done)
		}
		if got := to.titles(); !slices.Equal(got, want) {
			t.Errorf("%q, before %q", got, want)
		}
	}
}

func TestMarkdownRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		line := rapid.StringMatching(`(## |<!-- \{|\\|-->|a|b c|#|: )*x`)
		var all []entries.Entry
		for range rapid.IntRange(0, 4).Draw(rt, "n") {
			all = append(all, entries.Entry{
				Kind: rapid.SampledFrom(entries.Kinds()).Draw(rt, "kind"), Title: strings.Join(strings.Fields(line.Draw(rt, "title")), " "),
				Text: strings.Join(rapid.SliceOfN(line, 1, 4).Draw(rt, "lines"), "\n"), Key: rapid.StringMatching(`[0-9a-f]{16}`).Draw(rt, "key"),
				Origins: []entries.Origin{{By: entries.ByPerson, At: time.Unix(1, 0)}},
			})
		}
		var b bytes.Buffer
		if err := memory.WriteMarkdown(&b, "T", all); err != nil {
			rt.Fatal(err)
		}
		back, err := memory.ParseMarkdown(b.Bytes())
		if err != nil || len(back) != len(all) {
			rt.Fatalf("%v: %d entries of\n%s", err, len(back), b.Bytes())
		}
		for i, e := range all {
			if got := back[i]; got.Kind != e.Kind || got.Title != e.Title || got.Text != e.Text || got.Key != e.Key {
				rt.Fatalf("%+v became %+v in\n%s", e, got, b.Bytes())
			}
		}
	})
}

func TestMarkdownRefuses(t *testing.T) {
	t.Parallel()
	for text, line := range map[string]int{
		"# T\n\n## rumour: x\n\ny\n":                                  3,
		"## Heading\n":                                                1,
		"## decision: a\n\n<!-- {\"key\":\"a\"}\n":                    3,
		"## decision: a\n\n<!-- {key} -->\n":                          3,
		"## decision: a\n<!-- {\"key\":\"a\"} -->\n<!-- {} -->\ntext": 3,
	} {
		_, err := memory.ParseMarkdown([]byte(text))
		if fault, ok := errors.AsType[*memory.FileError](err); !ok || fault.Line != line {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParseMarkdown(f *testing.F) {
	f.Add([]byte("# T\n\n## decision: a\n\n<!-- {\"key\":\"00\"} -->\n\ntext\n\\## x\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		parsed, err := memory.ParseMarkdown(data)
		if err != nil {
			return
		}
		for _, p := range parsed {
			if !slices.Contains(entries.Kinds(), p.Kind) || strings.ContainsAny(p.Title, "\n\r\x00") || p.Line < 1 {
				t.Fatalf("%+v", p)
			}
		}
	})
}

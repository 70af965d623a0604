package clients

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// isWithin reports whether a text is what is left of another when some of it is taken out.
func isWithin(text, of []byte) bool {
	for _, c := range of {
		if len(text) > 0 && text[0] == c {
			text = text[1:]
		}
	}
	return len(text) == 0
}

// drawJSON draws the bytes of an object, as untidy as people write them. Bare ones have
// no member where the entry goes to, so that taking it out cannot tell what was there.
func drawJSON(t *rapid.T, keys []string, strict bool) (text string, bare bool) {
	blanks := []string{"", " ", "\n", "\n  ", "\r\n\t", "\t"}
	if !strict {
		blanks = append(blanks, "// c\n", " /* { */ ", "\n// \"x\": {\n\t", "/**/")
	}
	blank := rapid.SampledFrom(blanks)
	var object func(depth int, last string, members []string) string
	value := rapid.SampledFrom([]string{"1", "1e400", `"a\u0000\"}"`, "null", "[]", "[1, {\"b\": [] }]", `"é😀"`, "true", "{}", "{ }"})
	object = func(depth int, last string, members []string) string {
		var b strings.Builder
		b.WriteString("{")
		for i, m := range members {
			b.WriteString(blank.Draw(t, "before") + m)
			if i < len(members)-1 || last != "" {
				b.WriteString(blank.Draw(t, "comma") + ",")
			}
		}
		b.WriteString(blank.Draw(t, "end") + "}")
		return b.String()
	}
	members := func(of string, n int) []string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf("%q%s:%s%s", of+fmt.Sprint(i), blank.Draw(t, "name"), blank.Draw(t, "colon"), value.Draw(t, "value"))
		}
		return all
	}
	trailing := func(n int) string {
		if !strict && n > 0 && rapid.Bool().Draw(t, "trailing") {
			return ","
		}
		return ""
	}
	all := members("k", rapid.IntRange(0, 3).Draw(t, "members"))
	if bare = len(all) == 0; rapid.Bool().Draw(t, "table") {
		n := rapid.IntRange(0, 2).Draw(t, "servers")
		bare = n == 0
		inner := fmt.Sprintf("%q: %s", keys[0], object(1, trailing(n), members("s", n)))
		at := rapid.IntRange(0, len(all)).Draw(t, "at")
		all = append(all[:at:at], append([]string{inner}, all[at:]...)...)
	}
	return blank.Draw(t, "first") + object(0, trailing(len(all)), all) + rapid.SampledFrom([]string{"", "\n", "\r\n"}).Draw(t, "last"), bare
}

// drawTOML draws the bytes of a TOML file.
func drawTOML(t *rapid.T) string {
	var b strings.Builder
	nl := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "line end")
	parts := []string{
		"# c [mcp_servers.rye]", "", "  ", "k%d = 1 # x", "k%d = \"a # [b] \\\" \"", "k%d = '''\n[mcp_servers.rye]\ncommand = 1\n'''", "k%d = [\n 1, # ]\n {a = 1},\n]",
		"[t%d]", "[mcp_servers.s%d]\ncommand = \"x\"", "[mcp_servers.\"a.b%d\".env]", "[[l%d]]", "[ t%d . \"u\" ] # [", "\"q%d\".r = 2", "k%d = 1979-05-27T07:32:00Z", "k%d = inf",
	}
	for i := range rapid.IntRange(0, 8).Draw(t, "lines") {
		part := rapid.SampledFrom(parts).Draw(t, "line")
		if strings.Contains(part, "%d") {
			part = fmt.Sprintf(part, i)
		}
		b.WriteString(strings.ReplaceAll(part, "\n", nl) + nl)
	}
	return b.String()
}

// TestEverythingElseStays: whatever stands around an entry, every byte of it stays when
// the entry is put in, and is all there is when it is taken out.
func TestEverythingElseStays(t *testing.T) {
	t.Parallel()
	all := All()
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(all).Draw(t, "client")
		var (
			before string
			bare   bool
		)
		if c.format == tomlFormat {
			before = drawTOML(t)
		} else {
			before, bare = drawJSON(t, c.keys, c.Strict)
		}
		if rapid.Bool().Draw(t, "mark") {
			before = mark + before
		}
		after, err := c.Put([]byte(before), change())
		if err != nil {
			t.Fatalf("%q: %v", before, err)
		}
		if !isWithin([]byte(before), after) {
			t.Fatalf("%q\nbecame\n%q", before, after)
		}
		again, err := c.Put(after, change())
		if err != nil || !bytes.Equal(again, after) {
			t.Fatalf("again: %q, %v", again, err)
		}
		back, err := c.Take(after, "rye", []byte(before))
		if err != nil || string(back) != before {
			t.Fatalf("%q\ntaken out of\n%q\nis\n%q, %v", before, after, back, err)
		}
		blind, err := c.Take(after, "rye")
		if err != nil {
			t.Fatalf("taken out of %q: %v", after, err)
		}
		if !bare && string(blind) != before {
			t.Fatalf("%q\ntaken out of\n%q\nwithout looking back is\n%q", before, after, blind)
		}
	})
}

// FuzzPut: whatever bytes a configuration has, an edit is refused, or it is one that can
// be made again without a change and undone.
func FuzzPut(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "null", "// c", mark + "{\"mcpServers\":{\"rye\":{\"command\":\"rye-mcp\"}}}", "{\"servers\":{\"a\":{},},} // x", "{\"mcp\":{\"servers\":{}}}",
		"[mcp_servers.rye]\ncommand = 'rye-mcp'\n", "[mcp_servers]\nrye.command='''\n'''", "a = \"\"\"\"\"\"\"", "{\"mcpServers\":null,\"mcpServers\":{}}",
		"[\"mcp_servers\" . rye]\ncommand=\"rye-mcp\" # x\n[a]", "{\"context_servers\": {\"rye\": {\"command\": {\"path\": \"rye-mcp\"}}}}",
	} {
		f.Add([]byte(seed))
	}
	all := All()
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, c := range all {
			after, err := c.Put(content, change())
			if err != nil {
				continue
			}
			if again, err := c.Put(after, change()); err != nil || !bytes.Equal(again, after) {
				t.Errorf("%s: %q becomes %q and then %q, %v", c.ID, content, after, again, err)
			}
			_, was, err := c.Find(content, "rye")
			if err != nil {
				t.Errorf("%s: %q: %v", c.ID, content, err)
			}
			if was {
				continue
			}
			if back, err := c.Take(after, "rye", content); err != nil || !bytes.Equal(back, content) {
				t.Errorf("%s: %q becomes %q and back %q, %v", c.ID, content, after, back, err)
			}
		}
	})
}

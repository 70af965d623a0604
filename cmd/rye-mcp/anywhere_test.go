package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/storeurl"
)

const toldAnywhere = `
-- .ai/directives/keep.md --
` + "```xml" + `
<directive name="keep" version="1.0.0">
  <metadata>
    <model tier="fast" />
    <limits spend="0.50" />
    <permissions><execute><tool>rye.file-system.read</tool></execute></permissions>
  </metadata>
</directive>
` + "```" + `

Keep what is large.
-- .ai/directives/after.md --
` + "```xml" + `
<directive name="after" version="1.0.0">
  <metadata><model tier="fast" /><limits spend="0.50" /><context><before>agent/threads/@latest/keep</before></context></metadata>
</directive>
` + "```" + `

Say what came before.
-- model.yaml --
turns:
  - match: {first: It was large}
    text: It began with that.
  - match: {first: Keep what is large, turn: 1}
    tool_calls: [{name: rye_file_system_read, input: {path: large.txt}}]
  - match: {first: Keep what is large}
    text: It was large.
`

// machine is another machine of the same user: a user space of its own, with the same key.
func (p *place) machine(name string) (env []string) {
	p.Helper()
	home := filepath.Join(filepath.Dir(p.dir), name)
	p.noError(os.MkdirAll(home, 0o700))
	p.noError(uncheckSignatures(home))
	key, err := os.ReadFile(sign.StateKeyFile(p.home()))
	p.noError(err)
	p.noError(os.MkdirAll(sign.StateFolder(home), 0o700))
	p.noError(os.WriteFile(sign.StateKeyFile(home), key, 0o600))
	return []string{"HOME=" + home, "USER_SPACE=" + home, "RYE_CACHE_DIR=" + filepath.Join(home, "cache")}
}

// TestRecordsFromAnywhere: records that a thread has left on one machine are shown,
// verified and deleted from another.
func TestRecordsFromAnywhere(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, toldAnywhere)
	p.write("large.txt", []byte(strings.Repeat("a line of many words that are read\n", 3000)))
	_, err := sign.EnsureState(p.home(), nil)
	p.noError(err)
	p.env = append(p.env, storeurl.Variable+"="+pgtest.Server(t))
	other := p.machine("other")
	there := func(args ...string) string {
		t.Helper()
		out, err := p.cli(p.dir, other, args...)
		if err != nil {
			t.Fatalf("there: rye-mcp %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return out
	}
	has := func(what, in string, words ...string) {
		t.Helper()
		for _, word := range words {
			if !strings.Contains(in, word) {
				t.Errorf("%s lacks %q:\n%s", what, word, in)
			}
		}
	}

	has("the run", p.mustCLI(p.dir, "run", "keep"), "It was large.")
	has("its tail there", there("threads", "tail", "latest:keep"), "It was large.", "rye_file_system_read")
	has("its state there", there("threads", "show", "latest:keep"), "completed")
	has("its check there", there("threads", "verify", "latest:keep"), "verified")

	there("threads", "delete", "--yes", "latest:keep")
	if out, err := p.cli(p.dir, nil, "threads", "tail", "latest:keep"); err == nil || strings.Contains(out, "It was large.") {
		t.Errorf("deleted there, here it says %s", out)
	}
}

// TestOneKeyForAll: a machine with another key than the one that signs what a project's
// threads leave is told so, and store.key makes it one of them, which threads begin with what
// others have left.
func TestOneKeyForAll(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, toldAnywhere)
	p.write("large.txt", []byte("a line\n"))
	p.env = append(p.env, storeurl.Variable+"="+pgtest.Server(t))
	p.mustCLI(p.dir, "run", "keep")
	other := p.machine("other")
	home := strings.TrimPrefix(other[0], "HOME=")
	key, err := os.ReadFile(sign.StateKeyFile(p.home()))
	p.noError(err)
	p.noError(os.RemoveAll(sign.StateFolder(home)))

	for _, command := range [][]string{{"run", "keep"}, {"threads", "list"}, {"worker", "--project", "."}} {
		out, err := p.cli(p.dir, other, command...)
		if err == nil || !strings.Contains(out, "is signed by key") || !strings.Contains(out, "store.key") {
			t.Errorf("with another key rye-mcp %s says %v:\n%s", strings.Join(command, " "), err, out)
		}
	}

	fleet := filepath.Join(home, ".ai", "config", "keys", "fleet")
	p.noError(os.MkdirAll(fleet, 0o700))
	p.noError(os.WriteFile(filepath.Join(fleet, "private_key.pem"), key, 0o600))
	p.noError(os.WriteFile(filepath.Join(home, ".ai", "config", "agent", "agent.yaml"), []byte("integrity: {mode: strict}\n"), 0o600))
	for _, command := range [][]string{
		{"keys", "generate"}, {"sign", "keep"}, {"sign", "after"},
		{"config", "set", "--user", "store", "store.key", "~/.ai/config/keys/fleet/private_key.pem"}, {"run", "keep"}, {"threads", "verify", "--all"},
		{"run", "after"}, {"--store", "local", "run", "keep"}, {"--store", "local", "run", "after"},
	} {
		if out, err := p.cli(p.dir, other, command...); err != nil {
			t.Errorf("with the same key rye-mcp %s: %v\n%s", strings.Join(command, " "), err, out)
		}
	}
	renderings, err := filepath.Glob(filepath.Join(p.dir, ".ai", "knowledge", "agent", "threads", "keep", "*.md"))
	p.noError(err)
	if len(renderings) < 2 { // two stores can give the same id in the same second
		t.Errorf("of three threads there are the renderings %v", renderings)
	}
	for _, id := range []string{"@latest/keep", "keep/" + strings.TrimSuffix(filepath.Base(renderings[0]), ".md")} {
		if out, err := p.cli(p.dir, other, "items", "show", "agent/threads/"+id); err != nil || strings.Contains(out, "untrusted_key") {
			t.Errorf("what was left as %s: %v\n%s", id, err, out)
		}
	}
}

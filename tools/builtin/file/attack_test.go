package file

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/protect"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// changes is an edit of a line that no file has: a protected file is refused before
// its lines are looked at.
func changes() []in { return []in{{"line_id": "000000", "new_content": "x"}} }

// untouched tries every tool that changes files.
func (b *bench) untouched(path, words string) {
	b.t.Helper()
	b.refuse("write", in{"path": path, "content": "x"}, tool.CodeProtected, words)
	b.refuse("write", in{"path": path, "content": "x", "mode": "append"}, tool.CodeProtected, words)
	b.refuse("write", in{"files": []in{{"path": "fine", "content": "x"}, {"path": path, "content": "x"}}}, tool.CodeProtected, words)
	b.refuse("edit_lines", in{"path": path, "changes": changes()}, tool.CodeProtected, words)
	if _, err := os.Lstat(filepath.Join(b.dir, "fine")); err == nil {
		b.t.Errorf("%s: the file before it was written", path)
	}
}

// unseen tries every tool that looks.
func (b *bench) unseen(path string) {
	b.t.Helper()
	for name, args := range map[string]in{
		"read": {"path": path}, "ls": {"path": path}, "grep": {"path": path, "pattern": "."}, "glob": {"path": path, "pattern": "**"},
	} {
		b.refuse(name, args, tool.CodeProtected, "protected")
	}
}

// TestAttackPlantedSettings: a thread with file tools only writes settings, or files that git, editors and agents run commands from, at any depth and under other spellings. Every write, append and edit is refused, and no file is made.
func TestAttackPlantedSettings(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, path := range []string{
		".ai/config/agent/agent.yaml", ".ai/config/agent/provider.yaml", "vendor/x/.ai/config/agent/hooks.yaml", ".AI/Config/x.yaml", ".ai./config /x",
		".ai/conﬁg/../config/x.yaml", "./.ai//config/new/x.yaml",
	} {
		b.untouched(path, "Ask the person")
	}
	for _, path := range []string{
		".git/config", ".git", ".git/hooks/pre-commit", "sub/.git/config", "sub/.git", ".GIT/config", ".git /config", ".git./config", ".gi\u200ct/config",
		"git~1/config", ".git::$INDEX_ALLOCATION/config", ".mcp.json", "a/b/.MCP.json", ".envrc", "x/.envrc", ".claude/settings.json", ".claude/settings.local.json",
		".claude/ſettings.json", "p/.claude/settings.json", ".cursor/mcp.json", ".vscode/tasks.json", ".vscode/mcp.json", ".codex/config.toml",
		".zed/settings.json", "opencode.json", "sub/opencode.jsonc", ".opencode/plugin/x.js", ".claude/skills/x/.claude-plugin/plugin.json", ".claude/skills/x/monitors/monitors.json",
		".ai/config/keys/trusted/evil.toml", ".ai/config/x/keys/k", ".ai/state/threads/registry.db",
	} {
		b.untouched(path, "protected")
		b.refuse("read", in{"path": path}, tool.CodeProtected, "protected")
	}
	entries, err := os.ReadDir(b.dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("the project has %v, %v", entries, err)
	}
	// Their neighbours are files like any other.
	for _, path := range []string{
		".ai/directives/a.md", ".ai/tools/t.yaml", ".ai/knowledge/k.md", ".gitignore", ".github/workflows/ci.yml", ".claude/commands/x.md", ".vscode/settings.json",
		"config/keys/x", "state/x", "git/config", "envrc", "mcp.json",
	} {
		do[writeResult](b, "write", in{"path": path, "content": "x\n"})
		do[readResult](b, "read", in{"path": path})
	}
}

// TestAttackThreadState: a thread with file tools only empties the lock of a stranger's thread, replaces its own, or replaces and reads registry, ledger and thread.json. All of the state, wherever it lies, is neither read nor written nor listed.
func TestAttackThreadState(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	files := []string{
		".ai/state/threads/t/thread.lock", ".ai/state/threads/t/thread.json", ".ai/state/threads/registry.db", ".ai/state/threads/budget_ledger.db",
		".ai/state/ab12cd34/threads/t/thread.json", "sub/.ai/state/threads/t/thread.json",
	}
	for _, path := range files {
		b.put(path, "needle")
	}
	for _, path := range files {
		b.untouched(path, "protected")
		b.unseen(path)
		b.unseen(filepath.Dir(path))
		if got := b.content(path); got != "needle" {
			t.Errorf("%s is %q", path, got)
		}
	}
	if r := do[grepResult](b, "grep", in{"pattern": "needle"}); r.Count+r.FilesSearched > 0 {
		t.Errorf("found %+v", r)
	}
	if r := do[globResult](b, "glob", in{"pattern": "**"}); r.Count > 0 {
		t.Errorf("found %+v", r)
	}
	if r := do[lsResult](b, "ls", in{"path": ".ai"}); len(r.Entries) != 1 || !r.Entries[0].Protected {
		t.Errorf("listed %+v", r)
	}
}

// TestAttackPrivateKey: the project is the user space, contains it, or is the folder of its keys, and the model reads the private key. The user space and every folder of keys are refused to all file tools, under every name.
func TestAttackPrivateKey(t *testing.T) {
	t.Parallel()
	const key = ".ai/config/keys/signing/private.pem"
	for name, below := range map[string]string{"it is the user space": "", "it contains it": "home/me", "with a link": "linked"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			user := filepath.Join(dir, below)
			b := benchOf(t, dir, user)
			if below == "linked" {
				b.put("dotfiles/ai/config/keys/signing/private.pem", "PRIVATE")
				b.put("linked/x", "")
				if err := os.Symlink("../dotfiles/ai", filepath.Join(user, ".ai")); err != nil {
					t.Fatal(err)
				}
				b.unseen("dotfiles/ai/config/keys/signing/private.pem")
				b.untouched("dotfiles/ai/trust/settings.yaml", "protected")
			} else {
				b.put(filepath.Join(below, key), "PRIVATE")
			}
			b.unseen(filepath.Join(below, key))
			b.unseen(filepath.Join(below, ".ai"))
			b.untouched(filepath.Join(below, ".ai/directives/x.md"), "protected")
			if r := do[grepResult](b, "grep", in{"pattern": "PRIVATE"}); r.Count > 0 {
				t.Errorf("grep found %+v", r)
			}
		})
	}
	home := t.TempDir()
	for _, project := range []string{"", "config", "config/keys", "config/keys/signing"} {
		dir := filepath.Join(home, ".ai", project)
		b := benchOf(t, dir, home)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		b.unseen(".")
	}
}

// TestAttackOtherNames: a link, a hard link or a folder behind a link leads to protected files under names that look like any other. A path is judged by what it leads to as well as by its name.
func TestAttackOtherNames(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put(".git/config", "[core]")
	b.put(".ai/state/threads/t/thread.json", "{}")
	b.put("store/ai/config/agent/agent.yaml", "a: 1")
	b.put("conf/mcp.json", "{}")
	if err := os.MkdirAll(filepath.Join(b.dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"repo": ".git", "conf.txt": ".git/config", "sub/state": "../.ai/state", "two": "repo", ".mcp.json": "conf/mcp.json", "sub/.envrc": "new.sh",
	} {
		if err := os.Symlink(target, filepath.Join(b.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"hard.txt": ".git/config", "sub/hard.json": ".ai/state/threads/t/thread.json"} {
		if err := os.Link(filepath.Join(b.dir, target), filepath.Join(b.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{
		"repo/config", "conf.txt", "sub/state/threads/t/thread.json", "two/config", "two/hooks/pre-commit", "hard.txt", "sub/hard.json", ".mcp.json",
		"conf/mcp.json", "sub/.envrc", "sub/state/../state/threads/new",
	} {
		b.untouched(path, "protected")
		b.refuse("read", in{"path": path}, tool.CodeProtected, "protected")
	}
	if r := do[grepResult](b, "grep", in{"pattern": "core"}); r.Count > 0 {
		t.Errorf("grep found %+v", r)
	}
	// The folder .ai may be a link; what it leads to is what it is.
	if err := os.RemoveAll(filepath.Join(b.dir, ".ai")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("store/ai", filepath.Join(b.dir, ".ai")); err != nil {
		t.Fatal(err)
	}
	b.untouched("store/ai/config/agent/agent.yaml", "can be read and not written")
	b.untouched(".ai/config/agent/agent.yaml", "can be read and not written")
	do[readResult](b, "read", in{"path": "store/ai/config/agent/agent.yaml"})
	do[writeResult](b, "write", in{"path": ".ai/knowledge/x.md", "content": "x"})
	// Hard links of what is not protected are common.
	b.put("a.js", "x\n")
	if err := os.Link(filepath.Join(b.dir, "a.js"), filepath.Join(b.dir, "b.js")); err != nil {
		t.Fatal(err)
	}
	do[readResult](b, "read", in{"path": "b.js"})
}

// TestAttackSwappedFolder: while a tool works, another process puts a link to .git, or .git itself, in the place of the folder that was judged. The write fails and the other folder stays as it is.
func TestAttackSwappedFolder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put(".git/config", "[core]")
	b.put("sub/config", "old")
	p, err := (&space{}).open(tool.Env{Project: b.dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	pl, err := p.find("sub/config", protect.Writing)
	if err != nil {
		t.Fatal(err)
	}
	defer pl.Close()
	seen, err := os.Lstat(filepath.Join(b.dir, "sub"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(b.dir, "sub"), filepath.Join(b.dir, "away")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".git", filepath.Join(b.dir, "sub")); err != nil {
		t.Fatal(err)
	}
	if f := tool.AsFault(pl.replace([]byte("new"))); f == nil || !strings.Contains(f.Message, "moved or replaced") {
		t.Errorf("written: %v", f)
	}
	if dir, err := openSame(p.root, "sub", seen); err == nil {
		_ = dir.Close()
		t.Error("a link was opened as the folder that stood there")
	}
	if b.content(".git/config") != "[core]" || b.content("away/config") != "old" {
		t.Error("a file was changed")
	}
}

const signed = "# rye:signed:2026-01-02T03:04:05Z:" +
	"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef:c2VjcmV0LXNpZ25hdHVyZQ:0123456789abcdef"

// TestAttackSignatureByGrep: a model recovers the hidden signature of an item by matching it with grep, or by reading and editing around it. No tool shows, matches or numbers that line by its content.
func TestAttackSignatureByGrep(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	damaged := strings.Replace(signed, "# ", "x = 1 # ", 1) + " tail"
	v2 := strings.Replace(signed, "signed:", "signed:v2:", 1) + ":directive:team/deploy"
	b.put(".ai/tools/t.yaml", signed+"\nname: t\n"+damaged+"\nlast: 1\n"+v2+"\n")
	b.put(".ai/tools/other.yaml", strings.Replace(signed, "c2Vj", "d2Vj", 1)+"\nname: t\n")
	r := do[readResult](b, "read", in{"path": ".ai/tools/t.yaml"})
	if strings.Contains(r.Content, "rye:signed") || r.TotalLines != 5 || !strings.Contains(r.Note, "not shown") {
		t.Errorf("read %+v", r)
	}
	ids := b.ids(".ai/tools/t.yaml")
	if other := b.ids(".ai/tools/other.yaml"); len(ids) != 2 || other["name: t"] != ids["name: t"] {
		t.Errorf("ids %v, %v", ids, other)
	}
	for _, pattern := range []string{"signed", "c2Vj", "^# rye", "0123456789abcdef", "tail"} {
		if r := do[grepResult](b, "grep", in{"pattern": pattern}); r.Count > 0 {
			t.Errorf("%s: %+v", pattern, r)
		}
	}
	if r := do[grepResult](b, "grep", in{"pattern": "name", "include": "t.yaml"}); r.Matches[0].Line != 2 || r.Matches[0].LineID != ids["name: t"] {
		t.Errorf("grep %+v", r)
	}
	e := do[editResult](b, "edit_lines", in{"path": ".ai/tools/t.yaml", "changes": []in{{"line_id": ids["name: t"], "new_content": "name: u"}}})
	if e.Changed[0].StartLine != 2 || !strings.HasPrefix(b.content(".ai/tools/t.yaml"), signed+"\nname: u\n") {
		t.Errorf("edited %+v, %s", e, b.content(".ai/tools/t.yaml"))
	}
}

// TestAttackSignatureWritten: a model writes an item together with a signature that it has from elsewhere, at once or in pieces. Content with a signature that the file did not have is refused.
func TestAttackSignatureWritten(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const path, words = ".ai/tools/t.yaml", "signature line"
	b.refuse("write", in{"path": path, "content": signed + "\nname: t\n"}, tool.CodeProtected, words)
	half := strings.Index(signed, "c2Vj")
	do[writeResult](b, "write", in{"path": path, "content": signed[:half]})
	b.refuse("write", in{"path": path, "content": signed[half:], "mode": "append"}, tool.CodeProtected, words)
	ids := b.ids(path)
	b.refuse("edit_lines", in{"path": path, "changes": []in{{"line_id": ids[signed[:half]], "new_content": signed}}}, tool.CodeProtected, words)
	// A file keeps its own signature when something is added, and a text about signatures is a text.
	b.put(path, signed+"\nname: t\n")
	do[writeResult](b, "write", in{"path": path, "content": "more: 1\n", "mode": "append"})
	if got := b.content(path); got != signed+"\nname: t\nmore: 1\n" {
		t.Errorf("got %q", got)
	}
	do[writeResult](b, "write", in{"path": ".ai/knowledge/k.md", "content": "A line # rye:signed:TIME:HASH:SIG:KEY\n"})
	do[writeResult](b, "write", in{"path": "fixtures/t.yaml", "content": signed + "\n"})
}

// oneSecret is the masker of one secret.
type oneSecret string

func (s oneSecret) Mask(text string) string {
	return strings.ReplaceAll(text, string(s), "{secret:token}")
}
func (s oneSecret) MaskLines(text string) string      { return s.Mask(text) }
func (oneSecret) Writer(io.Writer) (w io.WriteCloser) { return nil }

// TestAttackSecretByOrder: a model writes files whose names hold a secret and finds its letters by patterns, by the order of listings and by line ids. Names and lines are matched, sorted and hashed with the placeholder in them.
func TestAttackSecretByOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mask = oneSecret("mm-secret-value")
	b.put("mm-secret-value", "mm-secret-value\n")
	b.put("z", "mm-secret-value\nx\n")
	b.put("a", "")
	for _, pattern := range []string{"m*", "mm-*", "?m*", "*value"} {
		if r := do[globResult](b, "glob", in{"pattern": pattern}); r.Count > 0 {
			t.Errorf("%s: %v", pattern, r.Files)
		}
		if r := do[grepResult](b, "grep", in{"pattern": "secret", "include": pattern}); r.Count > 0 {
			t.Errorf("%s: %v", pattern, r.Matches)
		}
	}
	if r := do[globResult](b, "glob", in{"pattern": "*"}); strings.Join(r.Files, " ") != "a z {secret:token}" {
		t.Errorf("glob %v", r.Files)
	}
	if r := do[lsResult](b, "ls", in{}); r.Entries[2].Name != "{secret:token}" {
		t.Errorf("ls %+v", r)
	}
	if r := do[grepResult](b, "grep", in{"pattern": "mm-sec"}); r.Count > 0 {
		t.Errorf("grep %+v", r)
	}
	// The placeholder that a model writes is the value when the tool gets it.
	if r := do[grepResult](b, "grep", in{"pattern": "mm-secret-value"}); r.Count != 2 {
		t.Errorf("grep %+v", r)
	}
	b.put("plain", "{secret:token}\nx\n")
	if hidden, plain := b.ids("z"), b.ids("plain"); hidden["{secret:token}"] != plain["{secret:token}"] {
		t.Errorf("ids %v, %v", hidden, plain)
	}
	do[editResult](b, "edit_lines", in{"path": "z", "changes": []in{{"line_id": b.ids("z")["x"], "new_content": "y"}}})
	if got := b.content("z"); got != "mm-secret-value\ny\n" {
		t.Errorf("the file has %q", got)
	}
}

// TestAttackRepositoryOfAnyName: a thread writes the files of a bare repository into a folder of any name, whose config runs commands when a person calls git there. Neither is such a folder made, nor is a file of one changed.
func TestAttackRepositoryOfAnyName(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	do[writeResult](b, "write", in{"files": []in{
		{"path": "sub/config", "content": "[core]\n\tfsmonitor = id\n"}, {"path": "sub/objects/x", "content": ""}, {"path": "sub/refs/x", "content": ""},
		{"path": "docs/HEAD", "content": "re"}, {"path": "HEAD", "content": "# Head of the list\n"},
	}})
	b.refuse("write", in{"path": "sub/HEAD", "content": "ref: refs/heads/main\n"}, tool.CodeProtected, "git repository")
	b.refuse("write", in{"path": "docs/HEAD", "content": "f: refs/heads/main\n", "mode": "append"}, tool.CodeProtected, "git repository")
	b.refuse("edit_lines", in{"path": "docs/HEAD", "changes": []in{{"line_id": b.ids("docs/HEAD")["re"], "new_content": strings.Repeat("a", 40)}}}, tool.CodeProtected, "git repository")
	for _, name := range []string{"HEAD", "objects/x", "refs/x", "config"} {
		b.put("bare/"+name, "ref: refs/heads/main")
	}
	for _, name := range []string{"config", "hooks/post-checkout", "objects/new"} {
		b.refuse("write", in{"path": "bare/" + name, "content": "x"}, tool.CodeProtected, "git repository")
	}
	do[readResult](b, "read", in{"path": "bare/config"})
}

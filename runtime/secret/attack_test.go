package secret_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/secret"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/tools/builtin/artifact"
	"github.com/rye-mcp/rye-mcp/tools/builtin/file"
	"github.com/rye-mcp/rye-mcp/tools/builtin/shell"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// fragment is the length of a part of a secret that must not be seen.
const fragment = 8

// oddSecrets are secrets of all sorts. Their parts stand in no other text of a test.
func oddSecrets() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		const odd = "ÄÖÜQZXJKVWqzxjkvw!%&/*:[\\(."
		text := rapid.StringOfN(rapid.RuneFrom([]rune(odd)), 12, 60, -1).Draw(t, "value")
		if rapid.Bool().Draw(t, "lines") {
			text = text[:len(text)/2] + "\nQ" + text[len(text)/2:]
		}
		return strings.ToValidUTF8(text, "Z")
	})
}

// leaks is a part of the secret that stands in a text, in letters of any size.
func leaks(text, value string) string {
	text, value = strings.ToLower(text), strings.ToLower(value)
	for _, line := range strings.Split(value, "\n") {
		for i := 0; i+fragment <= len(line); i++ {
			if strings.Contains(text, line[i:i+fragment]) {
				return line[i : i+fragment]
			}
		}
	}
	return ""
}

// seen is a result as a thread shows it.
func seen(t *rapid.T, v *secret.Vault, result any, err error) string {
	if err != nil {
		result = tool.AsFault(err).Body()
	}
	raw, jsonErr := json.Marshal(result)
	if jsonErr != nil {
		t.Fatal(jsonErr)
	}
	var plain any
	if err := json.Unmarshal(raw, &plain); err != nil {
		t.Fatal(err)
	}
	return v.Mask(fmt.Sprint(plain))
}

// calls are those that show parts of a file.
func calls(t *rapid.T, value string) (id string, args map[string]any) {
	limit, offset := rapid.IntRange(1, 4).Draw(t, "limit"), rapid.IntRange(1, 4).Draw(t, "offset")
	padded := strings.Repeat("p", rapid.IntRange(0, 90).Draw(t, "padding")) + value
	all := []struct {
		id   string
		args map[string]any
	}{
		{"rye/file-system/read", map[string]any{"path": "f"}},
		{"rye/file-system/read", map[string]any{"path": "f", "offset": offset, "limit": limit}},
		{"rye/file-system/grep", map[string]any{"pattern": "p+"}},
		{"rye/file-system/grep", map[string]any{"pattern": rapid.SampledFrom([]string{".", "[^p]", value[:1], "(?s).$"}).Draw(t, "pattern")}},
		{"rye/file-system/glob", map[string]any{"pattern": "**"}},
		{"rye/file-system/ls", map[string]any{}},
		{"rye/bash", map[string]any{"command": "cat f - f </dev/null"}},
		{"rye/file-system/write", map[string]any{"path": "g", "content": "", "mode": padded}},
		{"rye/file-system/write", map[string]any{padded: "g", "content": ""}},
		{"rye/file-system/read", map[string]any{"path": padded + "/x", "limit": padded}},
		{"rye/file-system/read", map[string]any{"path": padded + "/x"}},
		{"rye/file-system/grep", map[string]any{"pattern": "(" + padded}},
		{"rye/file-system/edit_lines", map[string]any{"path": "f", "changes": []any{map[string]any{"line_id": padded, "new_content": ""}}}},
		{"rye/file-system/glob", map[string]any{"pattern": padded + "/*"}},
		{"rye/file-system/glob", map[string]any{"pattern": "*", "path": padded}},
		{"rye/file-system/ls", map[string]any{"path": strings.Repeat("x", 300) + "/" + padded}},
		{"rye/file-system/write", map[string]any{"path": "f/" + padded, "content": ""}},
		{"rye/bash", map[string]any{"command": "true", "working_dir": padded}},
		{"rye/bash", map[string]any{"command": "cat f >&2; exit 3"}},
	}
	c := rapid.SampledFrom(all).Draw(t, "call")
	return c.id, c.args
}

// TestAttackSecretInHalves: padding moves a secret to where a tool cuts a line, an excerpt, a page or an output, so that one result has its first half and another the rest. Everything is masked before it is cut, and no part of eight bytes is ever seen.
func TestAttackSecretInHalves(t *testing.T) {
	t.Parallel()
	tools, err := tool.NewRegistry(append(file.Tools(file.Deps{}), shell.New(nil), artifact.New())...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		value := oddSecrets().Draw(t, "secret")
		v := secret.New(map[string]string{"token": value})
		pad := rapid.SampledFrom([]int{0, 70, 80, 290, 300, 500, 990, 1000, 7 << 10, 14 << 10, 19_990, 22_000}).Draw(t, "cut") -
			rapid.IntRange(0, len(value)+8).Draw(t, "shift")
		unit := rapid.SampledFrom([]string{"p", "p\n"}).Draw(t, "unit")
		content := strings.Repeat(unit, max(0, pad)/len(unit)) + value + strings.Repeat(unit, rapid.IntRange(0, 1200).Draw(t, "behind"))
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		id, args := calls(t, value)
		raw, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		found, _ := tools.Get(id)
		result, err := found.Call(t.Context(), tool.Env{Project: dir, Artifacts: artifact.Folder(dir), Mask: v}, raw)
		if part := leaks(seen(t, v, result, err), value); part != "" {
			t.Fatalf("%s %s shows %q of %q", id, raw, part, value)
		}
		for _, a := range tool.AttachmentsOf(result) {
			if part := leaks(string(v.MaskBytes(a.Data)), value); part != "" {
				t.Fatalf("%s attaches %q", id, part)
			}
		}
	})
}

// TestAttackSecretInDeltas: a model says a secret that it knows from elsewhere, in pieces of any length. The transcript has no part of it.
func TestAttackSecretInDeltas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		value := oddSecrets().Draw(t, "secret")
		v := secret.New(map[string]string{"token": value})
		n++
		path := filepath.Join(dir, fmt.Sprintf("%d.jsonl", n))
		w, err := transcript.Open(records.File(path), "test/task-1", transcript.Options{Mask: v})
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Repeat("p", rapid.IntRange(0, 9000).Draw(t, "before")) + value + "p"
		for len(text) > 0 {
			size := min(len(text), rapid.IntRange(1, 3000).Draw(t, "piece"))
			for size < len(text) && text[size]&0xC0 == 0x80 {
				size++
			}
			if err := w.Delta(1, llm.Delta{Type: llm.TextBlock, Text: text[:size]}); err != nil {
				t.Fatal(err)
			}
			text = text[size:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		written, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if part := leaks(string(written), value); part != "" || !strings.Contains(string(written), "{secret:token}") {
			t.Fatalf("the transcript has %q of %q: %s", part, value, written[max(0, len(written)-300):])
		}
	})
}

// TestMaskLines: every line stays, and none has a part of a secret.
func TestMaskLines(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := oddSecrets().Draw(t, "secret")
		v := secret.New(map[string]string{"token": value})
		around := rapid.StringMatching("[a-p\n]{0,20}")
		text := around.Draw(t, "before") + value + around.Draw(t, "between") + value + around.Draw(t, "behind")
		masked := v.MaskLines(text)
		if strings.Count(masked, "\n") != strings.Count(text, "\n") || leaks(masked, value) != "" {
			t.Fatalf("%q became %q", text, masked)
		}
		if (masked == "" || strings.HasSuffix(masked, "\n")) != (text == "" || strings.HasSuffix(text, "\n")) {
			t.Fatalf("%q ends otherwise: %q", text, masked)
		}
	})
}

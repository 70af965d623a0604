package action

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// inline are the requests that execute an item here; a fork is checked by the
// orchestrator.
func inline(t *testing.T) map[string]ExecuteRequest {
	t.Helper()
	hello := object(t, map[string]any{"who": "Ada"})
	list := object(t, map[string]any{"path": "."})
	return map[string]ExecuteRequest{
		"directive":          {ItemID: "test/hello", Parameters: hello},
		"directive, dry run": {ItemID: "test/hello", Parameters: hello, DryRun: true},
		"knowledge":          {ItemID: "test/facts"},
		"knowledge, dry run": {ItemID: "test/facts", DryRun: true},
		"tool":               {ItemID: "rye/file-system/ls", Parameters: list},
		"tool, dry run":      {ItemID: "rye/file-system/ls", Parameters: list, DryRun: true},
		"tool, async":        {ItemID: "rye/file-system/ls", Parameters: list, Async: true},
	}
}

// warningsOf are those of a result, or of what was asked of the orchestrator.
func (h *house) warningsOf(result any) []string {
	switch r := result.(type) {
	case *InlineDirective:
		return r.Warnings
	case *KnowledgeResult:
		return r.Warnings
	case *ToolResult:
		return r.Warnings
	case *DryRun:
		return r.Warnings
	default:
		return h.threads.run.Warnings
	}
}

func TestExecuteVerifies(t *testing.T) {
	t.Parallel()
	for _, mode := range []trust.Mode{trust.Strict, trust.Warn, trust.Off} {
		for name, request := range inline(t) {
			t.Run(string(mode)+" "+name, func(t *testing.T) {
				t.Parallel()
				h := newHouse(t)
				h.put(h.project, "tools/rye/file-system/ls.yaml", "version: 1.0.0\ndescription: Lists\nexecutor_id: rye/core/builtin\n")
				h.trust.Mode = mode
				result, err := h.Execute(t.Context(), h.client(), request)
				switch mode {
				case trust.Strict:
					details := wantFault(t, result, err, tool.CodeIntegrity, "it is not signed")
					path, _ := details["path"].(string)
					if details["signature"] != trust.Unsigned || details["item_id"] != request.ItemID || !strings.HasPrefix(path, h.project) {
						t.Errorf("details %v", details)
					}
					h.makeKey()
					kind, _, _ := strings.Cut(name, ",")
					h.sign(h.client(), kind, request.ItemID)
					result, err = h.Execute(t.Context(), h.client(), request)
					if err != nil || len(h.warningsOf(result)) > 0 {
						t.Errorf("signed: %v, %v", result, err)
					}
				case trust.Warn:
					if err != nil || len(h.warningsOf(result)) != 1 || !strings.Contains(h.warningsOf(result)[0], "it is not signed") {
						t.Errorf("got %+v, %v", result, err)
					}
				default:
					if err != nil || len(h.warningsOf(result)) > 0 {
						t.Errorf("got %+v, %v", result, err)
					}
				}
			})
		}
	}
}

// Reading and searching show what would be refused.
func TestFetchShowsTheSignature(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.trust.Mode = trust.Strict
	key := h.makeKey()
	signature := func(id string) Signature {
		t.Helper()
		got, err := h.Fetch(t.Context(), h.client(), FetchRequest{ItemID: id})
		if err != nil {
			t.Fatal(err)
		}
		return got.(*FetchResult).Signature
	}
	if s := signature("test/hello"); s.State != trust.Unsigned || s.Detail == "" || s.By != "" || s.SignedAt != "" {
		t.Errorf("unsigned: %+v", s)
	}
	h.sign(h.client(), "", "test/hello")
	if s := signature("test/hello"); s.State != trust.Genuine || s.By != key.Fingerprint() || s.Owner != "you" || s.SignedAt != "2026-01-02T03:04:05Z" {
		t.Errorf("signed: %+v", s)
	}
	h.put(h.project, "directives/test/hello.md", h.item(h.project, "directives/test/hello.md")+"more")
	if s := signature("test/hello"); s.State != trust.Altered || s.By != key.Fingerprint() || s.Owner != "" {
		t.Errorf("altered: %+v", s)
	}
	if s := signature("rye/core/errors"); s.State != trust.Shipped {
		t.Errorf("system: %+v", s)
	}
	private := filepath.Join(filepath.Dir(sign.PublicFile(h.user)), "private_key.pem")
	if err := os.Chmod(private, 0o644); err != nil {
		t.Fatal(err)
	}
	if s := signature("test/hello"); s.State != "unknown" || !strings.Contains(s.Detail, "chmod") {
		t.Errorf("with a key that everybody can read: %+v", s)
	}
	got, err := h.Execute(t.Context(), h.client(), ExecuteRequest{ItemID: "test/facts"})
	if err == nil || !strings.Contains(err.Error(), "chmod") {
		t.Errorf("executed with a key that everybody can read: %v, %v", got, err)
	}
}

func TestSignByPath(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.makeKey()
	h.put(h.project, "config/agent/hooks.yaml", "hooks: []\n")
	h.put(h.user, "config/agent/hooks.yml", "hooks: []\n")
	h.put(h.project, "config/keys/trusted/a.toml", "")
	h.put(h.project, "config/agent/two.yaml", "a: 1\n---\nb: 1\n")
	h.put(h.project, "outside.yaml", "a: 1\n")
	if err := os.Symlink("../../../outside.yaml", filepath.Join(h.project, ".ai/config/agent/link.yaml")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]SignedItem{
		"./.ai/directives/test/hello.md":                              {Item: "test/hello", Type: item.Directive, Space: item.Project},
		filepath.Join(h.project, ".ai/knowledge/test/facts.md"):       {Item: "test/facts", Type: item.Knowledge, Space: item.Project},
		filepath.Join(h.project, ".ai/tools/*/scr?pt.py"):             {Item: "test/script", Type: item.Tool, Space: item.Project},
		filepath.Join(h.project, ".ai/config/agent/hooks.yaml"):       {Space: item.Project},
		filepath.Join(h.user, ".ai/config/agent/hooks.yml"):           {Space: item.User},
		filepath.Join(h.user, ".ai/config/../config/agent/hooks.yml"): {Space: item.User},
	} {
		r := h.sign(h.client(), "", path)
		if len(r.Signed) != 1 {
			t.Fatalf("%s: %+v", path, r)
		}
		got := r.Signed[0]
		if got.Type != want.Type || got.Space != want.Space || want.Type != "" && got.Item != want.Item {
			t.Errorf("%s: got %+v, want %+v", path, got, want)
		}
		if data, err := os.ReadFile(got.Path); err != nil || !sign.Resembles(data, filepath.Ext(got.Path)) {
			t.Errorf("%s is not signed: %v", got.Path, err)
		}
	}
	for path, code := range map[string]tool.Code{
		"./.ai/config/keys/trusted/a.toml": tool.CodeBadArguments,
		"./.ai/config/agent/link.yaml":     tool.CodeBadArguments,
		"./outside.yaml":                   tool.CodeBadArguments,
		"./.ai/config":                     tool.CodeBadArguments,
		"./.ai/nothing/*":                  tool.CodeNotFound,
		"./missing.yaml":                   tool.CodeNotFound,
		"./[a":                             tool.CodeBadArguments,
	} {
		got, err := h.Sign(t.Context(), h.client(), SignRequest{ItemID: path})
		wantFault(t, got, err, code, "")
	}
	if r := h.sign(h.client(), "", "./.ai/config/agent/two.yaml"); r.Success || len(r.Failed) != 1 {
		t.Errorf("two documents: %+v", r)
	}
	got, err := h.Sign(t.Context(), h.thread(), SignRequest{ItemID: "./.ai/config/agent/hooks.yaml"})
	wantFault(t, got, err, tool.CodeUnsupported, "by their id")
}

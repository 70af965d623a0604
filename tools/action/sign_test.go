package action

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func (h *house) sign(c Caller, kind, id string) *SignResult {
	h.t.Helper()
	got, err := h.Sign(h.t.Context(), c, SignRequest{ItemType: kind, ItemID: id})
	if err != nil {
		h.t.Fatalf("%s %s: %v", kind, id, err)
	}
	return got
}

// signedBy checks that a key signed a file below .ai as the item that it is.
func (h *house) signedBy(key *sign.Key, dir, name string) error {
	ext := filepath.Ext(name)
	folder, id, _ := strings.Cut(strings.TrimSuffix(name, ext), "/")
	kinds := map[string]item.Kind{"directives": item.Directive, "tools": item.Tool, "knowledge": item.Knowledge}
	as := trust.NameOf(resolve.Entry{Kind: kinds[folder], ID: id, Ext: ext})
	return sign.Check([]byte(h.item(dir, name)), ext, as, key)
}

func TestSignOne(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	key := h.makeKey()
	for kind, name := range map[string]string{
		"directive test/hello": "directives/test/hello.md", "knowledge test/facts": "knowledge/test/facts.md", "tool test/script": "tools/test/script.py",
	} {
		kind, id, _ := strings.Cut(kind, " ")
		r := h.sign(h.client(), kind, id)
		if !r.Success || r.Total != 1 || len(r.Signed) != 1 || r.Signed[0].Item != id || r.Signed[0].Space != "project" {
			t.Errorf("got %+v", r)
		}
		if err := h.signedBy(key, h.project, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if info, err := os.Stat(filepath.Join(h.project, ".ai", name)); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("%s has mode %v, %v", name, info.Mode(), err)
		}
	}
	once := h.item(h.project, "directives/test/hello.md")
	h.sign(h.client(), "directive", "test/hello")
	if twice := h.item(h.project, "directives/test/hello.md"); strings.Count(twice, "rye:signed") != 1 || len(twice) != len(once) {
		t.Errorf("signed twice:\n%s", twice)
	}
}

func TestSignPattern(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	key := h.makeKey()
	h.put(h.user, "directives/test/deep/good.md", helloDirective)
	h.put(h.project, "directives/test/bad.md", "nothing")
	h.put(h.project, "directives/other.md", helloDirective)

	r := h.sign(h.client(), "directive", "test/**")
	if r.Success || r.Total != 3 || len(r.Signed) != 2 || len(r.Failed) != 1 {
		t.Fatalf("got %+v", r)
	}
	if f := r.Failed[0]; f.Item != "test/bad" || f.Error == "" || f.Details["line"] == nil {
		t.Errorf("got %+v", f)
	}
	if got := h.item(h.project, "directives/test/bad.md"); got != "nothing" {
		t.Errorf("the bad one became %q", got)
	}
	if strings.Contains(h.item(h.project, "directives/other.md"), "rye:signed") {
		t.Error("an item outside the pattern was signed")
	}
	if err := h.signedBy(key, h.user, "directives/test/deep/good.md"); err != nil {
		t.Error(err)
	}
	if r := h.sign(h.client(), "directive", "test/*"); r.Total != 2 {
		t.Errorf("* crosses folders: %+v", r)
	}
	holder := h.holder("rye.sign.directive.test.hello")
	r = h.sign(holder, "directive", "test/**")
	if r.Total != 3 || len(r.Signed) != 1 || r.Signed[0].Item != "test/hello" {
		t.Errorf("a thread that may sign one item signed %+v", r)
	}
}

// A sign of * in a project whose items lie in folders is told what crosses them.
func TestSignPatternOfOneFolder(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.makeKey()
	h.put(h.project, "directives/test/deep/good.md", helloDirective)
	got, err := h.Sign(t.Context(), h.client(), SignRequest{ItemType: "directive", ItemID: "*"})
	wantFault(t, got, err, tool.CodeNotFound, `"**" matches 2`)
	got, err = h.Sign(t.Context(), h.client(), SignRequest{ItemType: "directive", ItemID: "none/*"})
	wantFault(t, got, err, tool.CodeNotFound, "Find ids with rye_search.")
	got, err = h.Sign(t.Context(), h.client(), SignRequest{ItemType: "tool", ItemID: "rye/**"})
	wantFault(t, got, err, tool.CodeUnsupported, `nothing in the project or user space matches "rye/**"`)
}

// A link to something that is no item of its own is followed; one to another item
// would take that its signature.
func TestSignThroughLink(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	key := h.makeKey()
	h.put(h.project, "directives/.shared/text.md", helloDirective)
	link, alias := filepath.Join(h.project, ".ai/directives/link.txt.md"), filepath.Join(h.project, ".ai/directives/alias.md")
	if err := errors.Join(os.Rename(filepath.Join(h.project, ".ai/directives/.shared/text.md"), filepath.Join(h.project, ".ai/directives/.shared/text")),
		os.Symlink(".shared/text", link), os.Symlink("test/hello.md", alias)); err != nil {
		t.Fatal(err)
	}
	h.sign(h.client(), "directive", "link.txt")
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	if err := h.signedBy(key, h.project, "directives/link.txt.md"); err != nil {
		t.Error(err)
	}
	r := h.sign(h.client(), "directive", "alias")
	if len(r.Failed) != 1 || !strings.Contains(r.Failed[0].Error, `a link to directive "test/hello"`) {
		t.Errorf("got %+v", r)
	}
	if h.item(h.project, "directives/test/hello.md") != helloDirective {
		t.Error("it was signed as the link")
	}
}

func TestSignRefuses(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	request := func(c Caller, kind, id string) (any, error) {
		return h.Sign(t.Context(), c, SignRequest{ItemType: kind, ItemID: id})
	}
	got, err := request(h.client(), "directive", "test/hello")
	wantFault(t, got, err, tool.CodeNoKey, "rye-mcp init")
	h.makeKey()
	for _, c := range []struct {
		kind, id string
		code     tool.Code
	}{
		{"tool", "rye/file-system/read", tool.CodeUnsupported},
		{"tool", "rye/file-system/*", tool.CodeUnsupported},
		{"tool", "nothing/*", tool.CodeNotFound},
		{"tool", "nothing", tool.CodeNotFound},
		{"tool", "[a", tool.CodeBadArguments},
		{"tool", "a/../x", tool.CodeBadID},
		{"tool", "../x", tool.CodeNotFound},
		{"gadget", "x", tool.CodeBadArguments},
	} {
		got, err := request(h.client(), c.kind, c.id)
		wantFault(t, got, err, c.code, "")
	}
	got, err = request(h.holder(), "directive", "test/hello")
	wantFault(t, got, err, tool.CodePermissionDenied, "rye.sign.directive.test.hello")

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(thread.ErrCancelled)
	got, err = h.Sign(ctx, h.client(), SignRequest{ItemType: "directive", ItemID: "test/hello"})
	wantFault(t, got, err, tool.CodeCancelled, "")
	if got := h.item(h.project, "directives/test/hello.md"); got != helloDirective {
		t.Error("a refused item was changed")
	}
}

// TestSignNotesWhatStopsAStart: the answer tells of a directive by which no thread is started,
// of ours and of other programs.
func TestSignNotesWhatStopsAStart(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.makeKey()
	h.put(h.project, "directives/test/slip.md", strings.Replace(helloDirective, "<metadata>", `<metadata><limit turns="3" />`, 1))
	h.put(h.project, "../.claude/agents/part.md", "---\ntools: Read, Bash(git:*)\n---\n\nLook.\n")
	for id, want := range map[string]string{"test/slip": "<limit>", "claude/agents/part": "a part of Bash", "test/hello": ""} {
		r, err := h.Sign(t.Context(), h.client(), SignRequest{ItemType: "directive", ItemID: id})
		if err != nil || len(r.Signed) != 1 {
			t.Errorf("%s: %+v, %v", id, r, err)
			continue
		}
		if notes := strings.Join(r.Signed[0].Notes, "\n"); (want == "") != (notes == "") || !strings.Contains(notes, want) {
			t.Errorf("%s: notes %q, want %q", id, notes, want)
		}
	}
}

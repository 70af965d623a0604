package action

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func (h *house) sign(c Caller, kind, id string) *SignResult {
	h.t.Helper()
	got, err := h.Sign(h.t.Context(), c, SignRequest{ItemType: kind, ItemID: id})
	if err != nil {
		h.t.Fatalf("%s %s: %v", kind, id, err)
	}
	return got.(*SignResult)
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
		if err := sign.Check([]byte(h.item(h.project, name)), filepath.Ext(name), key); err != nil {
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
	if err := sign.Check([]byte(h.item(h.user, "directives/test/deep/good.md")), ".md", key); err != nil {
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

func TestSignThroughLink(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	key := h.makeKey()
	link := filepath.Join(h.project, ".ai/directives/link.md")
	if err := os.Symlink("test/hello.md", link); err != nil {
		t.Fatal(err)
	}
	h.sign(h.client(), "directive", "link")
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	if err := sign.Check([]byte(h.item(h.project, "directives/test/hello.md")), ".md", key); err != nil {
		t.Error(err)
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

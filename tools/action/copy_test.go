package action

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func (h *house) fetch(c Caller, r FetchRequest) *FetchResult {
	h.t.Helper()
	got, err := h.Fetch(h.t.Context(), c, r)
	if err != nil {
		h.t.Fatalf("%+v: %v", r, err)
	}
	return got.(*FetchResult)
}

func TestFetchCopies(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.trust.Mode = trust.Strict
	h.makeKey()
	want := filepath.Join(h.user, ".ai/tools/rye/file-system/ls.yaml")
	r := h.fetch(h.client(), FetchRequest{ItemType: "tool", ItemID: "rye/file-system/ls", Source: "system", Destination: "user"})
	if r.Space != item.System || r.CopiedTo != want || r.Replaced != "" || r.Next != `The copy is not executed before it is signed: rye_sign(item_type="tool", item_id="rye/file-system/ls", source="user").` {
		t.Errorf("got %+v", r)
	}
	if h.item(h.user, "tools/rye/file-system/ls.yaml") != r.Content {
		t.Error("the copy differs")
	}
	h.sign(h.client(), "tool", "rye/file-system/ls")
	// A signature is for kind and id, and goes with the copy.
	r = h.fetch(h.client(), FetchRequest{ItemType: "tool", ItemID: "rye/file-system/ls", Source: "user", Destination: "project"})
	if r.Next != "" || h.item(h.project, "tools/rye/file-system/ls.yaml") != h.item(h.user, "tools/rye/file-system/ls.yaml") {
		t.Errorf("got %+v", r)
	}
	if r := h.fetch(h.client(), FetchRequest{ItemID: "rye/file-system/ls"}); r.Signature.State != trust.Genuine || len(r.Shadows) != 2 {
		t.Errorf("the copy: %+v, shadows %+v", r.Signature, r.Shadows)
	}

	// The file that stands there is replaced only on request, and kept.
	h.put(h.project, "tools/rye/file-system/ls.yaml", "mine")
	request := FetchRequest{ItemType: "tool", ItemID: "rye/file-system/ls", Source: "system", Destination: "project"}
	got, err := h.Fetch(t.Context(), h.client(), request)
	wantFault(t, got, err, tool.CodeUnsupported, "ls.yaml exists")
	request.Overwrite = true
	r = h.fetch(h.client(), request)
	kept, err := os.ReadFile(r.Replaced)
	if err != nil || string(kept) != "mine" || h.item(h.project, "tools/rye/file-system/ls.yaml") != r.Content {
		t.Errorf("got %+v, kept %q, %v", r, kept, err)
	}
	if entries, err := h.Resolver.All(item.Tool); err != nil || len(entries) == 0 {
		t.Error(err)
	} else {
		for _, e := range entries {
			if strings.Contains(e.Path, ".replaced-") {
				t.Errorf("what was kept is an item: %+v", e)
			}
		}
	}
	drafts, err := filepath.Glob(filepath.Join(h.project, ".ai/tools/rye/file-system/.*"))
	if err != nil || len(drafts) > 0 {
		t.Errorf("left behind: %v, %v", drafts, err)
	}
}

func TestFetchFromOneSpace(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.put(h.user, "directives/test/hello.md", helloDirective+"\nFrom the user.\n")
	for source, want := range map[string]item.Space{"": item.Project, "project": item.Project, "user": item.User} {
		if r := h.fetch(h.client(), FetchRequest{ItemID: "test/hello", Source: source}); r.Space != want {
			t.Errorf("%q: from the %s space", source, r.Space)
		}
	}
	got, err := h.Fetch(t.Context(), h.client(), FetchRequest{ItemType: "directive", ItemID: "test/hello", Source: "system"})
	wantFault(t, got, err, tool.CodeNotFound, `no directive "test/hello" in the system space`)
}

func TestSignInOneSpace(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	key := h.makeKey()
	h.put(h.user, "directives/test/hello.md", helloDirective)
	h.put(h.user, "directives/test/other.md", helloDirective)
	for _, id := range []string{"test/hello", "test/*"} {
		got, err := h.Sign(t.Context(), h.client(), SignRequest{ItemType: "directive", ItemID: id, Source: "user"})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range got.Signed {
			if s.Space != item.User {
				t.Errorf("%s: %+v", id, s)
			}
		}
	}
	if err := errors.Join(h.signedBy(key, h.user, "directives/test/hello.md"), h.signedBy(key, h.user, "directives/test/other.md")); err != nil {
		t.Error(err)
	}
	if h.item(h.project, "directives/test/hello.md") != helloDirective {
		t.Error("the project's was signed")
	}
	got, err := h.Sign(t.Context(), h.client(), SignRequest{ItemID: "./.ai/directives/test/hello.md", Source: "project"})
	wantFault(t, got, err, tool.CodeBadArguments, "a path says by itself")
}

// TestAttackCopyOutOfBounds: a thread, or a link that a project brings, has an item copied to where its caller may not write.
// Nothing is written, neither through the link nor into the user space nor over another item.
func TestAttackCopyOutOfBounds(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	outside := t.TempDir()
	folder := filepath.Join(h.project, ".ai/tools")
	h.put(h.user, "directives/mine.md", helloDirective)
	h.put(h.user, "tools/mine.sh", "echo")
	h.put(h.user, "tools/linked/mine.sh", "echo")
	h.put(h.user, "tools/inner/mine.sh", "echo")
	h.put(h.user, "tools/file.sh", "echo")
	h.put(h.project, "tools/real/x.sh", "echo")
	h.put(h.project, "tools/mine.py", "x = 1")
	if err := errors.Join(
		os.Symlink(outside, filepath.Join(folder, "linked")), os.Symlink("real", filepath.Join(folder, "inner")),
		os.Symlink("real/x.sh", filepath.Join(folder, "file.sh")),
	); err != nil {
		t.Fatal(err)
	}
	copying := func(id, destination string) FetchRequest {
		return FetchRequest{ItemType: "tool", ItemID: id, Source: "user", Destination: destination, Overwrite: true}
	}
	system := FetchRequest{ItemType: "tool", ItemID: "rye/file-system/ls", Source: "system", Destination: "project"}
	toUser := system
	toUser.Destination = "user"
	fetches := []string{"rye.fetch.tool.rye.file-system.ls"}
	for name, tt := range map[string]struct {
		caller  Caller
		request FetchRequest
		code    tool.Code
		says    string
	}{
		"link out of the space":             {h.client(), copying("linked/mine", "project"), tool.CodeUnsupported, "not written through links"},
		"link within the space":             {h.client(), copying("inner/mine", "project"), tool.CodeUnsupported, "not written through links"},
		"linked file":                       {h.client(), copying("file", "project"), tool.CodeUnsupported, "not a regular file"},
		"same id, other language":           {h.client(), copying("mine", "project"), tool.CodeUnsupported, "in another language"},
		"onto itself":                       {h.client(), copying("mine", "user"), tool.CodeBadArguments, "already"},
		"thread that may not write":         {h.holder(fetches...), system, tool.CodePermissionDenied, writingFiles},
		"thread that may not fetch":         {h.holder(writingFiles), system, tool.CodePermissionDenied, "rye.fetch.tool.rye.file-system.ls"},
		"thread that writes the user space": {h.holder(append(fetches, writingFiles)...), toUser, tool.CodeUnsupported, "does not write the user space"},
		"overwrite without destination":     {h.client(), FetchRequest{ItemID: "test/hello", Overwrite: true}, tool.CodeBadArguments, "goes with destination"},
		"of a query":                        {h.client(), FetchRequest{Query: "x", Destination: "project"}, tool.CodeBadArguments, "go with item_id"},
	} {
		got, err := h.Fetch(t.Context(), tt.caller, tt.request)
		if _, fault := errors.AsType[*tool.Fault](err); !fault {
			t.Errorf("%s: got %+v, %v", name, got, err)
			continue
		}
		wantFault(t, got, err, tt.code, tt.says)
	}
	if r := h.fetch(h.holder(append(fetches, writingFiles)...), system); r.CopiedTo == "" {
		t.Errorf("a thread that may: %+v", r)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("written outside: %v, %v", entries, err)
	}
	if names, err := os.ReadDir(filepath.Join(folder, "real")); err != nil || len(names) != 1 {
		t.Errorf("written through a link: %v, %v", names, err)
	}
	shared := t.TempDir()
	if err := errors.Join(os.RemoveAll(filepath.Join(h.project, ".ai")), os.Symlink(shared, filepath.Join(h.project, ".ai"))); err != nil {
		t.Fatal(err)
	}
	got, err := h.Fetch(t.Context(), h.client(), system)
	wantFault(t, got, err, tool.CodeUnsupported, "not written through links")
}

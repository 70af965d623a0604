package action

import (
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func TestFetch(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	fetch := func(r FetchRequest) *FetchResult {
		t.Helper()
		got, err := h.Fetch(t.Context(), h.client(), r)
		if err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		return got.(*FetchResult)
	}
	k := fetch(FetchRequest{ItemID: "test/facts"})
	if !k.Success || k.ItemType != "knowledge" || k.Space != "project" || !strings.HasSuffix(k.Path, "test/facts.md") ||
		strings.Contains(k.Content, "rye:unsigned") || !strings.Contains(k.Content, "title: Some Facts") || k.Metadata["version"] != "1.0.0" {
		t.Errorf("knowledge: %+v", k)
	}
	d := fetch(FetchRequest{ItemType: "directive", ItemID: "test/hello"})
	if d.Metadata["name"] != "hello" || d.Metadata["model_tier"] != "fast" || d.Content != helloDirective {
		t.Errorf("directive: %+v", d)
	}
	if all := string(object(t, d)); !strings.Contains(all, `"greeting"`) || !strings.Contains(all, `"whom to greet"`) {
		t.Errorf("inputs and outputs are not shown: %s", all)
	}
	h.put(h.project, "tools/rye/file-system/read.py", "\"\"\"Mine.\"\"\"\n")
	r := fetch(FetchRequest{ItemType: "tool", ItemID: "rye/file-system/read"})
	if r.Space != "project" || r.Metadata["description"] != "Mine." || len(r.Shadows) != 1 || r.Shadows[0].Space != "system" {
		t.Errorf("shadowing tool: %+v", r)
	}
	h.put(h.project, "tools/test/lookup.py", "\"\"\"Looks up.\"\"\"\nfrom rye.x import A\n__version__ = '2'\nCONFIG_SCHEMA = {'enum': A}\n")
	s := fetch(FetchRequest{ItemType: "tool", ItemID: "test/lookup"})
	if all := string(object(t, s)); s.Metadata["version"] != "2" || !strings.Contains(all, "schema not static: it uses A, which is imported on line 2") {
		t.Errorf("a schema that is not static: %s", all)
	}
	h.put(h.user, "directives/broken.md", "no block here")
	if b := fetch(FetchRequest{ItemID: "broken"}); b.Content != "no block here" || len(b.Warnings) != 1 || b.Metadata == nil {
		t.Errorf("broken item: %+v", b)
	}
	for _, c := range []struct {
		r    FetchRequest
		code tool.Code
	}{
		{FetchRequest{}, tool.CodeBadArguments},
		{FetchRequest{ItemID: "a", Query: "b"}, tool.CodeBadArguments},
		{FetchRequest{ItemID: "test/gone"}, tool.CodeNotFound},
		{FetchRequest{ItemID: "../../etc/passwd"}, tool.CodeBadID},
		{FetchRequest{Query: `"open`}, tool.CodeInvalidQuery},
	} {
		got, err := h.Fetch(t.Context(), h.client(), c.r)
		wantFault(t, got, err, c.code, "")
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for name, call := range map[string]func() (any, error){
		"search": func() (any, error) {
			return h.Search(t.Context(), h.client(), SearchRequest{Query: "greet", Scope: "directive"})
		},
		"fetch": func() (any, error) {
			return h.Fetch(t.Context(), h.client(), FetchRequest{Query: "greet", ItemType: "directive"})
		},
	} {
		got, err := call()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r := got.(*SearchResult)
		if !r.Success || r.Total != 1 || len(r.Results) != 1 || r.Results[0].ID != "test/hello" || r.Query != "greet" || r.Scope != "directive" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	got, err := h.Search(t.Context(), h.client(), SearchRequest{Query: "zzzz"})
	if err != nil || !strings.Contains(string(object(t, got)), `"results":[]`) {
		t.Errorf("nothing found: %s, %v", object(t, got), err)
	}
	got, err = h.Search(t.Context(), h.client(), SearchRequest{Query: `"open`})
	if details := wantFault(t, got, err, tool.CodeInvalidQuery, "phrases"); details["query"] != `"open` {
		t.Errorf("details %v", details)
	}
}

package action

import (
	"testing"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Results that are a page, or a text to be read, say so, and so does the result
// of a tool that pages by itself: a thread's model is given them whole.
func TestPagedResults(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for name, c := range map[string]struct {
		request ExecuteRequest
		paged   bool
	}{
		"read":      {ExecuteRequest{ItemID: "rye/file-system/read", Parameters: object(t, map[string]any{"path": "note.txt"})}, true},
		"ls":        {ExecuteRequest{ItemID: "rye/file-system/ls"}, false},
		"knowledge": {ExecuteRequest{ItemID: "test/facts"}, true},
		"directive": {ExecuteRequest{ItemID: "test/hello", Parameters: object(t, map[string]any{"who": "Ada"})}, true},
		"plan":      {ExecuteRequest{ItemID: "rye/file-system/read", DryRun: true, Parameters: object(t, map[string]any{"path": "note.txt"})}, false},
	} {
		got, err := h.Execute(t.Context(), h.client(), c.request)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if tool.IsPage(got) != c.paged {
			t.Errorf("%s: %T is a page: %v", name, got, !c.paged)
		}
	}
}

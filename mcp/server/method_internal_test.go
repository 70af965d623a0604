package server

import (
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// TestHintOfMethod: a hint is a sentence behind the message, and names stay as they are
// written.
func TestHintOfMethod(t *testing.T) {
	t.Parallel()
	s := &Server{}
	for hint, want := range map[string]string{
		"list_threads shows the threads of this project": "there is none. list_threads shows the threads of this project",
		"rye://threads lists them":                       "there is none. rye://threads lists them",
		"tasks/get tells how it stands":                  "there is none. tasks/get tells how it stands",
		"give back nextCursor, or leave cursor out":      "there is none. Give back nextCursor, or leave cursor out",
		"first: initialize":                              "there is none. First: initialize",
	} {
		err := tool.Faultf(tool.CodeNotFound, "there is none").WithHint("%s", hint)
		if got := s.rpcErrorOf(t.Context(), mcp.MethodResourcesRead, err); got.Message != want {
			t.Errorf("%q, want %q", got.Message, want)
		}
	}
}

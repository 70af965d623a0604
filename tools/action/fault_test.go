package action

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/search"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func TestFault(t *testing.T) {
	t.Parallel()
	own := tool.Faultf(tool.CodeUnpriced, "no price")
	cases := []struct {
		err    error
		code   tool.Code
		detail string // a key that must be there
	}{
		{own, tool.CodeUnpriced, ""},
		{item.CheckID("../x"), tool.CodeBadID, ""},
		{&resolve.NotFoundError{ID: "x"}, tool.CodeNotFound, "nearest_ids"},
		{&resolve.AmbiguousError{ID: "x", Kinds: item.Kinds()}, tool.CodeAmbiguous, "item_types"},
		{&resolve.UnreadableError{ID: "x", Path: "/p", Err: errors.New("a link")}, tool.CodeInvalidItem, "path"},
		{&parse.Error{Path: "/p", Line: 3, Reason: "no block"}, tool.CodeInvalidItem, "line"},
		{&inputs.Error{Problems: []string{"x is missing"}}, tool.CodeInvalidInputs, "declared_inputs"},
		{&config.Error{Path: "/p", Line: 3, Reason: "no number"}, tool.CodeInvalidConfig, "line"},
		{&config.NotFoundError{Provider: "x", Known: []string{"y"}}, tool.CodeNoProvider, "known_providers"},
		{&search.QueryError{Query: "(", Pos: 0, Reason: "not closed"}, tool.CodeInvalidQuery, "position"},
		{sign.ErrNoKey, tool.CodeNoKey, ""},
		{context.Canceled, tool.CodeCancelled, ""},
		{errors.New("disk full"), tool.CodeInternal, ""},
	}
	for _, c := range cases {
		for _, err := range []error{c.err, fmt.Errorf("doing: %w", c.err)} {
			f := Fault(err)
			if f.Code != c.code || f.Message == "" {
				t.Errorf("Fault(%v) = %s %q, want %s", err, f.Code, f.Message, c.code)
			}
			if _, ok := f.Details[c.detail]; c.detail != "" && !ok {
				t.Errorf("Fault(%v) has the details %v, want %s", err, f.Details, c.detail)
			}
			if !errors.Is(f, c.err) {
				t.Errorf("Fault(%v) lost the cause", err)
			}
		}
	}
	if Fault(nil) != nil {
		t.Error("Fault(nil) is not nil")
	}
}

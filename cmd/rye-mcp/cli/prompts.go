package cli

import (
	"context"
	"strings"

	"github.com/rye-mcp/rye-mcp/mcp/prompt"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/tools/builtin/file"
)

// newPrompts offers the directives of a project to clients.
func newPrompts(p *project) *prompt.Feed {
	return &prompt.Feed{Items: p.items, Library: &prompt.Library{
		Actions: p.actions,
		Paths: func(ctx context.Context, prefix string, most int) ([]string, error) {
			return file.Complete(ctx, p.path, p.resolver.Roots().User, prefix, most)
		},
		Threads: func(ctx context.Context, prefix string, most int) ([]string, error) {
			list, err := p.control.View.List(ctx, view.ListRequest{Text: prefix, Limit: most})
			if err != nil {
				return nil, err
			}
			var ids []string
			for _, t := range list.Threads {
				if id := string(t.ThreadID); strings.HasPrefix(id, prefix) {
					ids = append(ids, id)
				}
			}
			return ids, nil
		},
	}}
}

package page

import (
	"context"
	"net/http"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// routes maps the API. A request that is not here is answered like all others: to who
// has a token.
func (p *Page) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range []struct {
		pattern, operation string
		answer             answerer
	}{
		{"POST " + exchangePath, "exchange", p.exchange},
		{"GET /ui/api/session", "session", p.session},
		{"/ui/api/", "unknown", p.unknown},
	} {
		mux.HandleFunc(r.pattern, p.handle(r.operation, r.answer))
	}
	return mux
}

func (p *Page) unknown(_ context.Context, c *call) (any, error) {
	return nil, refuse(http.StatusNotFound, tool.CodeNotFound, "the page's API has no %s %s", c.r.Method, item.Clip(c.r.URL.Path, 200))
}

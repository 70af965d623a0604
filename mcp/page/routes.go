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
		{"GET /ui/api/board", "board", p.board},
		{"POST /ui/api/call/{operation}", "call", p.call},
		{"POST /ui/api/start", "start", p.start},
		{"POST /ui/api/threads/{id}/plan-delete", "plan-delete", p.planDelete},
		{"GET /ui/api/threads/{id}", "thread", p.thread},
		{"GET /ui/api/threads/{id}/timeline", "timeline", p.timeline},
		{"GET /ui/api/threads/{id}/spend", "spend", p.spend},
		{"GET /ui/api/threads/{id}/transcript", "transcript", p.transcript},
		{"GET /ui/api/threads/{id}/events/{seq}", "event", p.event},
		{"GET /ui/api/threads/{id}/artifacts", "artifacts", p.artifacts},
		{"GET /ui/api/threads/{id}/artifacts/{name}", "artifact", p.artifact},
		{"GET /ui/api/threads/{id}/diff", "diff", p.diff},
		{"GET /ui/api/threads/{id}/verify", "verify", p.verify},
		{"GET /ui/api/threads/{id}/receipt", "receipt", p.receipt},
		{"GET /ui/api/threads/{id}/export", "export", p.export},
		{"GET /ui/api/costs", "costs", p.costs},
		{"GET /ui/api/costs/over-time", "costs over time", p.costsOverTime},
		{"GET /ui/api/compare", "compare", p.compare},
		{"GET /ui/api/directives", "directives", p.directives},
		{"GET /ui/api/directives/{id...}", "directive", p.directive},
		{"GET /ui/api/search", "search", p.search},
		{"/ui/api/", "unknown", p.unknown},
	} {
		mux.HandleFunc(r.pattern, p.handle(r.operation, r.answer))
	}
	return mux
}

func (p *Page) unknown(_ context.Context, c *call) (any, error) {
	return nil, refuse(http.StatusNotFound, tool.CodeNotFound, "the page's API has no %s %s", c.r.Method, item.Clip(c.r.URL.Path, 200))
}

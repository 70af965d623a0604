package cli

import (
	"net/http"

	"github.com/rye-mcp/rye-mcp/orchestrator/metrics"
)

// metrics serves /metrics, for Prometheus, behind the server's bearer.
func (m *mcpServer) metrics(sys System) map[string]http.Handler {
	return map[string]http.Handler{"GET /metrics": metrics.New(metrics.Options{
		Version: version(), Started: sys.Now(), Now: sys.Now, Log: m.log, Projects: m.projects.measured,
	})}
}

// measured are the projects that calls have named so far.
func (ps *projects) measured() (list []metrics.Project) {
	for _, p := range ps.opened() {
		list = append(list, metrics.Project{Path: p.path, Rows: p.store})
	}
	return list
}

package cli

import (
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/orchestrator/metrics"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

func newMetricsCommand(sys System) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "metrics",
		Short: "What Prometheus and Grafana need to watch threads",
		Long: `Every "rye-mcp serve --http" tells Prometheus of its threads at /metrics, behind the
token that its clients have. "rye-mcp help traces" shows how it is set up.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:     "dashboard",
		Short:   "Write a dashboard for Grafana, to be imported there",
		Example: `  rye-mcp metrics dashboard > rye-mcp.json`,
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(sys.Stdout, metrics.Dashboard)
			return err
		},
	})
	return cmd
}

// metrics serves /metrics, for Prometheus, behind the server's bearer.
func (m *mcpServer) metrics(sys System) map[string]http.Handler {
	return map[string]http.Handler{"GET /metrics": metrics.New(metrics.Options{
		Version: version(), Started: sys.Now(), Now: sys.Now, Log: m.log, Projects: m.projects.measured,
	})}
}

// measured are the projects that calls have named so far.
func (ps *projects) measured() (list []metrics.Project) {
	for _, p := range ps.opened() {
		list = append(list, metrics.Project{
			Path: p.path, Rows: p.store, Transcript: func(id thread.ID) records.Source { return p.records().Of(id).Transcript() },
		})
	}
	return list
}

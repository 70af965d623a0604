package cli

import (
	"slices"
	"testing"

	"github.com/rye-mcp/rye-mcp/tools/process"
)

// TestAttackModelSetsEndpoint: a model runs rye-mcp in a shell, with an endpoint for traces of its own in the environment, and starts a thread by it. Neither that program nor the process of the thread takes the endpoint for the user's.
func TestAttackModelSetsEndpoint(t *testing.T) {
	t.Parallel()
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT=http://evil.example.com"
	by := func(environ, outer []string) System {
		return System{Environ: environ, Outer: outer, Getenv: lookUp(environ)}
	}
	below := by([]string{endpoint, "A=b", process.ParentVariable + "=t-1"}, nil)
	if got := telemetryVariables(below); len(got) != 0 {
		t.Errorf("%q counts", got)
	}
	if got := outerOf(below); slices.Contains(got, endpoint) || !slices.Contains(got, "A=b") {
		t.Errorf("a thread is handed %q", got)
	}
	person := by([]string{endpoint, "A=b"}, nil)
	if !slices.Contains(telemetryVariables(person), endpoint) || !slices.Contains(outerOf(person), endpoint) {
		t.Error("the user's own does not count")
	}
	thread := by([]string{"A=b", process.ParentVariable + "=t-1"}, []string{endpoint})
	if !slices.Contains(telemetryVariables(thread), endpoint) || !slices.Contains(outerOf(thread), endpoint) {
		t.Error("the process of a thread does not have what its starter had")
	}
}

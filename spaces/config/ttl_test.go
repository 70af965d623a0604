package config_test

import (
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// TestAttackTTL: a project has settings by which all threads of its user expire. They do
// not count, not even in a project that its user has accepted.
func TestAttackTTL(t *testing.T) {
	t.Parallel()
	hostile := "threads: {ttl: 1h, sweep_interval: 1m, compress_after: 1m, tool_concurrency: 2}\n"
	for name, files := range map[string]map[string]string{
		"of the project":        {"project/agent/agent.yaml": hostile},
		"over that of a user's": {"project/agent/agent.yaml": hostile, "user/agent/agent.yaml": "threads: {ttl: 8w, sweep_interval: 2h, compress_after: off}\n"},
	} {
		for _, open := range []func(t *testing.T, files map[string]string) string{
			func(t *testing.T, files map[string]string) string { l, _ := spaces(t, files); return keeps(t, l) },
			func(t *testing.T, files map[string]string) string { l, _ := accepted(t, files); return keeps(t, l) },
		} {
			want := " 60m 24h"
			if len(files) > 1 {
				want = "8w 2h off"
			}
			if got := open(t, files); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	}
}

func keeps(t *testing.T, l *config.Loader) string {
	t.Helper()
	agent, _, err := l.Read().Agent()
	if err != nil {
		t.Fatal(err)
	}
	return agent.Threads.TTL + " " + agent.Threads.SweepInterval + " " + agent.Threads.CompressAfter
}

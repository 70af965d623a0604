package chain

import "testing"

// TestAttackToolNamesHeaders: the configuration of a tool names the variables that hold the credentials of the user's traces. It is given no value, as if they were not set, while other variables that it names are.
func TestAttackToolNamesHeaders(t *testing.T) {
	t.Parallel()
	v := &variables{environ: []string{"OTEL_EXPORTER_OTLP_HEADERS=k=secret", "OTEL_EXPORTER_OTLP_TRACES_HEADERS=k=secret", "GITHUB_TOKEN=t"}, dotenv: func() map[string]string { return nil }}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		if value, ok := v.get(name); ok || value != "" {
			t.Errorf("%s is %q", name, value)
		}
	}
	if value, ok := v.get("GITHUB_TOKEN"); !ok || value != "t" {
		t.Error("others are not given any more")
	}
}

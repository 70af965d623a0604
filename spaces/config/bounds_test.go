package config_test

import (
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/alloctest"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// TestAttackMemoryOfSettings: settings of a project, as large as they may be, nest, repeat and refer to themselves so that reading them costs far more than their size.
// The memory that reading takes stays within a fixed multiple of the size, whatever its shape.
func TestAttackMemoryOfSettings(t *testing.T) { //nolint:paralleltest // it measures what is allocated
	longtest.Mark(t)
	files := map[string]string{}
	for name, text := range alloctest.YAML(alloctest.Size(1<<20) - 1<<10) {
		files[name] = text
		if rest, ok := strings.CutPrefix(text, "a: "); ok {
			files["provider.order "+name] = "provider:\n  order: " + rest
		}
	}
	alloctest.Linear(t, 200, files, func(_ string, data []byte) { _, _ = config.CheckFile("agent", "agent.yaml", data) })
}

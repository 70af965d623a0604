package cli

import (
	"testing"

	"go.uber.org/goleak"

	_ "github.com/rye-mcp/rye-mcp/cmd/rye-mcp/confined" // tests run themselves as commands of tools
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

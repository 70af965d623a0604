// Package trusttest accepts settings of projects in tests.
package trusttest

import (
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// T is what testing and rapid have in common.
type T interface {
	Helper()
	Fatal(args ...any)
}

// AcceptSettings accepts the settings of a project as they are, as its user would.
func AcceptSettings(t T, roots resolve.Roots) {
	t.Helper()
	snapshot, err := trust.Take(roots.Project)
	if err == nil {
		err = trust.Accept(roots, snapshot, time.Unix(1, 0))
	}
	if err != nil {
		t.Fatal(err)
	}
}

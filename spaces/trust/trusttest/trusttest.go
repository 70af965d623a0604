// Package trusttest accepts projects in tests.
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

// AcceptSettings accepts a project as it is, as its user does with trust.
func AcceptSettings(t T, roots resolve.Roots) {
	t.Helper()
	snapshot, err := trust.Take(roots.Project)
	if err == nil {
		err = trust.AcceptAll(roots, snapshot, time.Unix(1, 0))
	}
	if err != nil {
		t.Fatal(err)
	}
}

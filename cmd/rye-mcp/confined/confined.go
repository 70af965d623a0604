// Package confined makes this process a confined command of a tool, where it was
// started for that, before packages of other modules are initialized: see package gc
// for why that is early. Programs import it for that effect alone.
package confined

import (
	"os"

	"github.com/rye-mcp/rye-mcp/tools/confine/inside"
)

//nolint:gochecknoinits // there is no other moment before those of other modules
func init() { inside.Main(os.Args, os.Environ()) }

//go:build !linux

package confine

import (
	"context"

	"github.com/rye-mcp/rye-mcp/tools/process"
)

func (c *Confiner) look(context.Context) Available {
	return Available{Why: "this system is not Linux"}
}

func (c *Confiner) become(string, Policy, Available, *process.Command) error { return nil }

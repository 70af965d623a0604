//go:build !linux

package confinetest

import (
	"context"
	"syscall"
)

// Possible is false: only Linux has what it takes.
func Possible(context.Context, *syscall.SysProcAttr) bool { return false }

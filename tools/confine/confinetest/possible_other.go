//go:build !linux

package confinetest

import "context"

// Possible is false: only Linux has what it takes.
func Possible(context.Context) bool { return false }

package process

import (
	"iter"
	"os"
)

// Ancestry returns the arguments of this process alone: macOS has no /proc.
func Ancestry() iter.Seq[[]string] {
	return func(yield func([]string) bool) { yield(os.Args) }
}

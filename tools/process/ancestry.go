//go:build linux || darwin

package process

import (
	"iter"
	"os"
)

// maxAncestry bounds the walk of [Ancestry], in which a number may have got to
// another process meanwhile.
const maxAncestry = 128

// Ancestry returns the arguments of this process and of those that have started
// it, the nearest first. It ends at a process whose parent is gone.
func Ancestry() iter.Seq[[]string] { return AncestryOf(os.Getpid()) }

// AncestryOf is [Ancestry] of another process.
func AncestryOf(pid int) iter.Seq[[]string] {
	return func(yield func(args []string) bool) {
		for _, args := range ancestorsOf(pid) {
			if !yield(args) {
				return
			}
		}
	}
}

// ancestors are this process and those that have started it, by their numbers.
func ancestors() iter.Seq2[int, []string] { return ancestorsOf(os.Getpid()) }

func ancestorsOf(pid int) iter.Seq2[int, []string] {
	return func(yield func(pid int, args []string) bool) {
		pid := pid
		for n := 0; pid > 1 && n < maxAncestry; n++ {
			args, err := argsOf(pid)
			if err != nil || !yield(pid, args) {
				return
			}
			pid = parentOf(pid)
		}
	}
}

package threadlog

import (
	"os"

	"golang.org/x/sys/unix"
)

// replace makes the descriptor of f another one of next. Children inherit it, as
// they inherit standard streams.
func replace(f, next *os.File) error { return unix.Dup2(int(next.Fd()), int(f.Fd())) }

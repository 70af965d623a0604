//go:build unix

package resolve

import "syscall"

// nonblock keeps the opening of a named pipe from waiting for a writer.
const nonblock = syscall.O_NONBLOCK

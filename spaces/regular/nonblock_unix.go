//go:build unix

package regular

import "syscall"

// NonBlock is the flag with which the opening of a named pipe does not wait for the other
// end.
const NonBlock = syscall.O_NONBLOCK

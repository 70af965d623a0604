//go:build !linux

package inside

// Main returns: nothing can be confined on this system, and nobody asks for it.
func Main(_, _ []string) {}

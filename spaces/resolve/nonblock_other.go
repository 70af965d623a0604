//go:build !unix

package resolve

// nonblock is nothing where the file system has no named pipes.
const nonblock = 0

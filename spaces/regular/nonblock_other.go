//go:build !unix

package regular

// NonBlock is nothing where the file system has no named pipes.
const NonBlock = 0

//go:build !linux

package transcript

import "os"

// syncData puts the content of f on disk.
func syncData(f *os.File) error { return f.Sync() }

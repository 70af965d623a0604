//go:build !unix

package search

import "io/fs"

// othersWrite is not told by the mode of a file here: the folder of a user's caches
// is the user's.
func othersWrite(fs.FileInfo) bool { return false }

func isOurs(fs.FileInfo) bool { return true }

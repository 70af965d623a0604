//go:build !unix

package configfile

import (
	"io/fs"
	"os"
)

// mayKeepOwner is true: owners are not told apart here.
func mayKeepOwner(fs.FileInfo) bool { return true }

func keepOwner(*os.File, fs.FileInfo) error { return nil }

// lockFile does nothing: folders cannot be locked here.
func lockFile(*os.File) error { return nil }

// Package system is the system space: the items and the configuration that are
// shipped inside the binary.
package system

import (
	"embed"
	"io/fs"
)

//go:embed all:ai
var files embed.FS

// FS returns the content of the embedded .ai folder: directives, knowledge,
// config.
func FS() fs.FS {
	sub, err := fs.Sub(files, "ai")
	if err != nil {
		panic("bug; the embedded folder has no valid name: " + err.Error())
	}
	return sub
}

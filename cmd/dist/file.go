package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// file is something that was written.
type file struct {
	name   string
	size   int
	sha256 string
}

func write(out, name string, data []byte) (file, error) {
	sum := sha256.Sum256(data)
	return file{name, len(data), hex.EncodeToString(sum[:])}, os.WriteFile(filepath.Join(out, name), data, 0o644)
}

// sums is what sha256sum --check reads.
func sums(files []file) []byte {
	var out bytes.Buffer
	for _, f := range files {
		fmt.Fprintf(&out, "%s  %s\n", f.sha256, f.name)
	}
	return out.Bytes()
}

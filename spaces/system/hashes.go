package system

import (
	"crypto/sha256"
	_ "embed" // for hashes
	"encoding/hex"
	"strings"
)

//go:generate go test . -run ^TestHashes$ -update

// hashes lists what is shipped, in the form of sha256sum, sorted by path below
// ai. A test compares it with the folder, so that no file gets into the program,
// or is changed, without a line in a diff that says so.
//
//go:embed hashes.txt
var hashes string

// Has reports whether a file is shipped under the path, which is below ai, with
// exactly this content.
func Has(path string, content []byte) bool {
	sum := sha256.Sum256(content)
	// A path cannot be taken for another line, for a hash stands before each.
	line := hex.EncodeToString(sum[:]) + "  " + path + "\n"
	return !strings.Contains(path, "\n") && strings.Contains(hashes, line)
}

// Sum names all that is shipped: the SHA-256 of the list of its files, in hex.
func Sum() string {
	sum := sha256.Sum256([]byte(hashes))
	return hex.EncodeToString(sum[:])
}

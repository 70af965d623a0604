package palette

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxName is the longest tool name that every provider takes; the characters
// they all take are letters, digits, "_" and "-".
const maxName = 64

// FlatName is the name a model calls a tool by: rye/file-system/read becomes
// rye_file_system_read. A name that would be longer than 64 characters is cut
// and gets a hash of the id.
func FlatName(id string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, id)
	if len(name) > maxName {
		return withHash(name, id)
	}
	return name
}

// withHash makes name differ from that of any other id.
func withHash(name, id string) string {
	sum := sha256.Sum256([]byte(id))
	suffix := "_" + hex.EncodeToString(sum[:4])
	return name[:min(len(name), maxName-len(suffix))] + suffix
}

// unique takes name, or name with a hash of the id where it is taken already:
// a/b-c and a/b/c have the same flat name.
func unique(taken map[string]bool, name, id string) string {
	for taken[name] {
		name = withHash(name, id)
		id += "'" // in case of two equal hashes
	}
	taken[name] = true
	return name
}

package sign

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kinds of what is signed besides items, whose kinds are "directive", "tool" and
// "knowledge".
const (
	KindSettings     = "settings"     // named by the path below .ai/config
	KindTrustedKey   = "trusted_key"  // named by the fingerprint of the key
	KindCapabilities = "capabilities" // of a thread, named by its id
	KindForeign      = "foreign"      // the files of another program's item, named by its id
)

// Name says what a signature is for. It is compared byte by byte: two ids that
// differ in case are two items, also where a file system would find the same file
// for both.
type Name struct {
	Kind string // directive, tool, knowledge, or one of the kinds above
	// ID is the id of the item. That of a tool carries the extension of its file,
	// which decides what runs the text.
	ID string
}

func (n Name) String() string {
	return fmt.Sprintf("%s %q", strings.ReplaceAll(n.Kind, "_", " "), n.ID)
}

// maxID bounds the id of a name, in bytes, so that a signature line stays short.
const maxID = 1100

// check refuses a name that could be read in two ways, or not be read back.
func (n Name) check() error {
	switch {
	case !isKind(n.Kind):
		return fmt.Errorf("a signature is for no %q", n.Kind)
	case n.ID == "" || len(n.ID) > maxID:
		return fmt.Errorf("a signature is for an id of 1 to %d bytes, not of %d", maxID, len(n.ID))
	case !utf8.ValidString(n.ID) || strings.ContainsFunc(n.ID, unicode.IsControl):
		return fmt.Errorf("a signature cannot be for %q: it holds control characters or is not UTF-8", n.ID)
	}
	return nil
}

// isKind keeps the words of a signature line to known ones: what a language reads
// out of a comment, such as Python's "coding:", is none of them.
func isKind(kind string) bool {
	switch kind {
	case "directive", "tool", "knowledge", KindSettings, KindTrustedKey, KindCapabilities, KindForeign:
		return true
	default:
		return false
	}
}

// message is what is signed.
func (n Name) message(hexHash string) []byte {
	return []byte("rye2\n" + n.Kind + "\n" + n.ID + "\n" + hexHash)
}

// encode writes the name for a signature line: <kind>:<id>, the id in percent
// encoding.
func (n Name) encode() string { return n.Kind + ":" + escape(n.ID) }

// escape leaves letters, digits and a few signs as they are, and so neither a
// blank, nor a colon, nor the end of a comment.
func escape(id string) string {
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-"
	var text strings.Builder
	for i := range len(id) {
		if strings.IndexByte(plain, id[i]) >= 0 {
			text.WriteByte(id[i])
			continue
		}
		fmt.Fprintf(&text, "%%%02X", id[i])
	}
	return text.String()
}

// decodeName reads what encode wrote, and nothing else.
func decodeName(kind, id string) (Name, bool) {
	plain, err := url.PathUnescape(id)
	n := Name{Kind: kind, ID: plain}
	return n, err == nil && n.check() == nil && escape(plain) == id
}

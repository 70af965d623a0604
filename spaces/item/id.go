package item

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrBadID is wrapped by every refusal of an item id.
var ErrBadID = errors.New("not an item id")

const (
	// maxIDBytes leaves room for the path of the space within the 1024 bytes
	// that the strictest common system (macOS) allows a path.
	maxIDBytes = 512
	// maxSegmentBytes leaves room for an extension and the suffix of a temporary
	// file within the 255 bytes that common file systems allow a name.
	maxSegmentBytes = 200
)

// CheckID reports whether id can name an item: a clean relative path below the
// folder of its kind, "/"-separated and without extension. The error wraps
// [ErrBadID] and says what is wrong.
func CheckID(id string) error {
	if reason := badID(id); reason != "" {
		return fmt.Errorf("%w: %q %s", ErrBadID, Shown(id), reason)
	}
	return nil
}

// badID returns what is wrong with id, or nothing.
func badID(id string) string {
	switch {
	case id == "":
		return "is empty"
	case len(id) > maxIDBytes:
		return fmt.Sprintf("is longer than %d bytes", maxIDBytes)
	case !utf8.ValidString(id):
		return "is not valid UTF-8"
	case strings.ContainsFunc(id, unicode.IsControl):
		return "contains a control character"
	case strings.Contains(id, `\`):
		return `contains a backslash; segments are separated by "/"`
	case strings.HasPrefix(id, "/"):
		return "is an absolute path; ids are relative to the folder of their kind"
	case strings.HasSuffix(id, "/"):
		return "ends with a slash"
	case strings.Contains(id, ".."):
		return `contains ".."`
	}
	for segment := range strings.SplitSeq(id, "/") {
		switch {
		case segment == "":
			return "has an empty segment"
		case segment == ".":
			return `contains the segment "."`
		case len(segment) > maxSegmentBytes:
			return fmt.Sprintf("has a segment longer than %d bytes", maxSegmentBytes)
		}
	}
	return ""
}

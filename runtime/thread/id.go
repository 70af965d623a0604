package thread

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ID names a thread: "<directive id>-<unix seconds>", with "-2", "-3", …
// appended when that is taken. Runs of a tool in the background have a UUID
// instead. The id is also the path of the thread's folder below
// .ai/state/threads, so it may contain "/".
type ID string

// ErrBadID is wrapped by every refusal of a thread id.
var ErrBadID = errors.New("not a thread id")

// maxIDBytes keeps the folder of a thread within the path limits of common
// file systems (4096 bytes a path on Linux, 1024 on macOS).
const maxIDBytes = 512

// maxSegmentBytes is the longest name of one folder on common file systems.
const maxSegmentBytes = 255

// NewID returns the n-th candidate (from 1) for a thread of directive that is
// created at now.
func NewID(directive string, now time.Time, n int) ID {
	id := directive + "-" + strconv.FormatInt(now.Unix(), 10)
	if n > 1 {
		id += "-" + strconv.Itoa(n)
	}
	return ID(id)
}

// ParseID checks that s can be a thread id: relative, clean, without "..",
// backslash or control characters, and short enough to be a path.
func ParseID(s string) (ID, error) {
	if err := checkPath(s); err != nil {
		return "", fmt.Errorf("%w: %q %w", ErrBadID, clip(s), err)
	}
	return ID(s), nil
}

func checkPath(s string) error {
	if s == "" {
		return errors.New("is empty")
	}
	if len(s) > maxIDBytes {
		return fmt.Errorf("is longer than %d bytes", maxIDBytes)
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f || r == '\\' || r == '\uFFFD' }) {
		return errors.New("contains a backslash, a control character or invalid UTF-8")
	}
	for segment := range strings.SplitSeq(s, "/") {
		switch {
		case segment == "":
			return errors.New("has an empty segment")
		case segment == "." || segment == "..":
			return errors.New(`contains "." or ".."`)
		case len(segment) > maxSegmentBytes:
			return fmt.Errorf("has a segment longer than %d bytes", maxSegmentBytes)
		}
	}
	return nil
}

// clip shortens a hostile id for an error message.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}

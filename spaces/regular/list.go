package regular

import (
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
)

// ListSome reads at most so many entries of an open folder, sorted by name, and reports
// whether there are more. The file system decides which ones it reads.
func ListSome(folder fs.ReadDirFile, most int) (entries []fs.DirEntry, more bool, err error) {
	entries, err = folder.ReadDir(most + 1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if more = len(entries) > most; more {
		entries = entries[:most]
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, more, err
}

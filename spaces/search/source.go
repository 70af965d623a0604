package search

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// Source lists the items to index. *resolve.Resolver is one.
type Source interface {
	// All lists the items of a kind in all spaces, shadowed ones included.
	All(kind item.Kind) ([]resolve.Entry, error)
	// Items is All without the records of threads.
	Items(kind item.Kind) ([]resolve.Entry, error)
	// Roots are the spaces the entries are in.
	Roots() resolve.Roots
}

// isGone reports that a file is not there any more.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// stamps tell whether an item has changed since it was indexed.
type stamps struct {
	roots  resolve.Roots
	now    func() time.Time
	hashes map[string]string // of the system space's items, by path
}

// unsettled is how long a file is not told by its time from what it was before. File
// systems of today count in steps of up to 10 ms.
const unsettled = 50 * time.Millisecond

// of returns a text that is another one when the item's content is. The files of
// the system space have no times, but do not change while the program runs, so
// they are hashed once.
func (s *stamps) of(e resolve.Entry) (string, error) {
	if e.Space != item.System {
		// A file that has just been changed may be changed again within one tick of the
		// clock of its file system, to the same length.
		if age := s.now().Sub(e.ModTime); age > -unsettled && age < unsettled {
			return unread, nil
		}
		return strconv.FormatInt(e.Size, 10) + "@" + strconv.FormatInt(e.ModTime.UnixNano(), 10), nil
	}
	if hash, ok := s.hashes[e.Path]; ok {
		return hash, nil
	}
	src, err := resolve.Read(s.roots, e)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", e.Path, err)
	}
	sum := sha256.Sum256(src)
	hash := hex.EncodeToString(sum[:])
	s.hashes[e.Path] = hash
	return hash, nil
}

// ranks order the items of one kind and id: project, user, system, and within a
// space as they are found. The lowest wins.
func ranks(e resolve.Entry) (space, rank int) {
	return slices.Index(item.Spaces(), e.Space), e.Rank()
}

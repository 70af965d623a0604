package records

import (
	"errors"
	"io"

	"github.com/rye-mcp/rye-mcp/spaces/regular"
)

// Copy is a copy of a record wherever somebody has put it, plain or compressed: which of
// them, its first bytes say.
type Copy string

var _ Source = Copy("")

// zstdMagic is what a frame of zstd begins with (RFC 8878, 3.1.1).
const zstdMagic = "\x28\xb5\x2f\xfd"

// Open implements [Source]. A file that another program has compressed is
// [ErrDamaged].
func (p Copy) Open() (Reader, error) {
	f, _, err := regular.Follow(string(p))
	if err != nil {
		return nil, err
	}
	head, n := make([]byte, len(zstdMagic)), 0
	if _, err = (file{f}).Size(); err == nil {
		n, err = f.ReadAt(head, 0)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, f.Close())
	}
	if string(head[:n]) == zstdMagic {
		return compressedIn(f)
	}
	return file{f}, nil
}

// Stamp implements [Source]. That of a compressed record has the size of its file.
func (p Copy) Stamp() (Stamp, error) { return File(p).Stamp() }

// Where implements [Source].
func (p Copy) Where() string { return string(p) }

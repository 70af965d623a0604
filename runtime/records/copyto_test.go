package records_test

import (
	"errors"
	"io"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/spaces/alloctest"
)

// blank is a record of so many zeros; reading beyond its middle is an error where it is
// torn.
type blank struct {
	size   int64
	torn   error
	closed *bool
}

func (z blank) ReadAt(p []byte, off int64) (int, error) {
	if z.torn != nil && off > z.size/2 {
		return 0, z.torn
	}
	n := min(int64(len(p)), z.size-off)
	clear(p[:n])
	if n < int64(len(p)) {
		return int(n), io.EOF
	}
	return int(n), nil
}

func (z blank) Close() error         { *z.closed = true; return nil }
func (z blank) Size() (int64, error) { return z.size, nil }

type counter int64

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

// TestCopyTo: a record is copied whole, however large it is, and costs no more memory than
// a small one.
func TestCopyTo(t *testing.T) {
	alloctest.NotUnderRace(t)
	var closed bool
	z := blank{size: 256 << 20, closed: &closed}
	open := func() (records.Reader, error) { return z, nil }
	var got counter
	var err error
	if used := alloctest.Bytes(func() { err = records.CopyTo(&got, open) }); err != nil || int64(got) != z.size || used > 1<<20 || !closed {
		t.Errorf("%d of %d bytes copied with %d bytes of memory, closed %v: %v", got, z.size, used, closed, err)
	}
	z.torn, closed = errors.New("torn"), false
	if err := records.CopyTo(io.Discard, open); !errors.Is(err, z.torn) || !closed {
		t.Errorf("torn: %v, closed %v", err, closed)
	}
	if err := records.CopyTo(io.Discard, func() (records.Reader, error) { return nil, io.ErrClosedPipe }); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("not opened: %v", err)
	}
}

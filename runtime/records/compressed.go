package records

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/klauspost/compress/zstd"
)

// A compressed record is a file in the seekable format of zstd, which every zstd program
// reads: frames that each stand alone, and behind them a frame that is skipped, with their
// sizes. See contrib/seekable_format of facebook/zstd.
const (
	frameBytes      = 256 << 10 // of content in each frame but the last
	maxFrameBytes   = frameBytes + 4<<10
	maxContentBytes = 512 << 20 // longer contents are not compressed

	skippableMagic = 0x184D2A5E
	seekableMagic  = 0x8F92EAB1
	skippableHead  = 8 // magic, size
	tableEntry     = 8 // bytes in the file, bytes of content
	tableFoot      = 9 // frames, descriptor, magic
)

// ErrDamaged says that a compressed record is not what was written.
var ErrDamaged = errors.New("the compressed record is damaged")

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// frame is where a part of the content lies.
type frame struct {
	at   int64 // in the file
	size int   // in the file
	says int   // bytes of content
}

// compressed reads the content of a compressed record. It keeps the frame that was read
// last.
type compressed struct {
	from   file
	frames []frame
	size   int64 // of the content

	mu      sync.Mutex
	decoder *zstd.Decoder // nil until it is needed
	packed  []byte
	last    []byte // content of the frame at
	at      int    // -1: none
}

var _ Reader = (*compressed)(nil)

// openCompressed opens a compressed record, through no link.
func openCompressed(path string) (*compressed, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return compressedIn(f)
}

// compressedIn reads the compressed record in an open file, which it closes with itself.
func compressedIn(f *os.File) (*compressed, error) {
	c := &compressed{from: file{f}, at: -1}
	size, err := c.from.Size()
	if err == nil {
		err = c.readTable(size)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", f.Name(), err), f.Close())
	}
	return c, nil
}

// readTable reads where the frames lie. They fill the file up to the table, and each but
// the last one the most that a frame has.
func (c *compressed) readTable(size int64) error {
	if size < skippableHead+tableFoot {
		return damaged("it has %d bytes", size)
	}
	var foot [tableFoot]byte
	if err := c.read(foot[:], size-tableFoot); err != nil {
		return err
	}
	n := int64(binary.LittleEndian.Uint32(foot[:]))
	length := skippableHead + n*tableEntry + tableFoot
	if binary.LittleEndian.Uint32(foot[5:]) != seekableMagic || foot[4] != 0 || n > maxContentBytes/frameBytes || length > size {
		return damaged("it does not end with a table of its frames")
	}
	table := make([]byte, length-tableFoot)
	if err := c.read(table, size-length); err != nil {
		return err
	}
	if binary.LittleEndian.Uint32(table) != skippableMagic || int64(binary.LittleEndian.Uint32(table[4:])) != length-skippableHead {
		return damaged("its table has no beginning")
	}
	var at int64
	for i := range n {
		entry := table[skippableHead+i*tableEntry:]
		f := frame{at: at, size: int(binary.LittleEndian.Uint32(entry)), says: int(binary.LittleEndian.Uint32(entry[4:]))}
		if f.size == 0 || f.size > maxFrameBytes || f.says == 0 || f.says > frameBytes || f.says < frameBytes && i < n-1 {
			return damaged("frame %d has %d bytes of %d", i+1, f.size, f.says)
		}
		c.frames = append(c.frames, f)
		at += int64(f.size)
		c.size += int64(f.says)
	}
	if at != size-length {
		return damaged("its frames have %d bytes, and %d are there", at, size-length)
	}
	return nil
}

// read reads all of into.
func (c *compressed) read(into []byte, at int64) error {
	n, err := c.from.ReadAt(into, at)
	if n == len(into) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return damaged("it was cut off")
	}
	return err
}

// Size implements [Reader].
func (c *compressed) Size() (int64, error) { return c.size, nil }

// ReadAt implements [io.ReaderAt].
func (c *compressed) ReadAt(into []byte, at int64) (n int, err error) {
	if at < 0 {
		return 0, fmt.Errorf("read at %d: %w", at, fs.ErrInvalid)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for n < len(into) {
		here := at + int64(n)
		if here >= c.size || here < 0 {
			return n, io.EOF
		}
		if err := c.load(int(here / frameBytes)); err != nil {
			return n, err
		}
		n += copy(into[n:], c.last[here%frameBytes:])
	}
	return n, nil
}

// load makes a frame the last one.
func (c *compressed) load(i int) (err error) {
	if c.at == i {
		return nil
	}
	if c.decoder == nil {
		c.decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(frameBytes), zstd.WithDecoderLowmem(true))
		if err != nil {
			return err
		}
	}
	f := c.frames[i]
	c.at, c.packed = -1, append(c.packed[:0], make([]byte, f.size)...)
	if err := c.read(c.packed, f.at); err != nil {
		return err
	}
	if c.last, err = c.decoder.DecodeAll(c.packed, c.last[:0]); err != nil {
		return damaged("frame %d: %v", i+1, err)
	}
	if len(c.last) != f.says {
		return damaged("frame %d has %d bytes of content, and its table says %d", i+1, len(c.last), f.says)
	}
	c.at = i
	return nil
}

// Close implements [io.Closer].
func (c *compressed) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.decoder != nil {
		c.decoder.Close()
		c.decoder = nil
	}
	return c.from.Close()
}

// compress writes the compressed record of what is read, and returns how many bytes of
// content that has.
func compress(to io.Writer, from io.Reader) (content int64, err error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true),
		zstd.WithWindowSize(frameBytes), zstd.WithSingleSegment(true), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, encoder.Close()) }()
	part, table := make([]byte, frameBytes), make([]byte, skippableHead)
	var packed []byte
	for {
		n, err := io.ReadFull(from, part)
		if n > 0 {
			packed = encoder.EncodeAll(part[:n], packed[:0])
			table = binary.LittleEndian.AppendUint32(table, uint32(len(packed)))
			table = binary.LittleEndian.AppendUint32(table, uint32(n))
			if content += int64(n); content > maxContentBytes {
				return content, fmt.Errorf("it has more than %d MiB", maxContentBytes>>20)
			}
			if _, err := to.Write(packed); err != nil {
				return content, err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return content, err
		}
	}
	binary.LittleEndian.PutUint32(table, skippableMagic)
	binary.LittleEndian.PutUint32(table[4:], uint32(len(table)-skippableHead+tableFoot))
	table = binary.LittleEndian.AppendUint32(table, uint32((len(table)-skippableHead)/tableEntry))
	table = append(table, 0)
	_, err = to.Write(binary.LittleEndian.AppendUint32(table, seekableMagic))
	return content, err
}

// wholeOf reads a record from its beginning.
func wholeOf(r io.ReaderAt) io.Reader { return io.NewSectionReader(r, 0, math.MaxInt64) }

// draft makes a new file that is filled and put on disk, with a time of change.
func draft(path string, changed time.Time, fill func(io.Writer) error) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // of one that was cut short
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	err = fill(f)
	if err == nil {
		err = os.Chtimes(path, time.Time{}, changed)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

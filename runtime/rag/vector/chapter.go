package vector

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// Record is one vector of a chapter.
type Record struct {
	Seq    int64
	Labels Labels
	Vector []float32 // of length 1
}

// Labels are what a search selects by before it compares. Their meaning is the caller's.
type Labels [4]uint64

// Name says which chapter it is: records After < Seq ≤ Through of vectors of one dimension.
// The stamp is the caller's, 16 bytes, and different for every set of records.
type Name struct {
	Stamp          [16]byte
	After, Through int64
	Dimension      int
}

// MaxRecords bounds a chapter.
const MaxRecords = 512

// A file of codes has, in little-endian order:
//
//	 0  magic, 16 bytes
//	16  stamp
//	32  after, through: int64
//	48  dimension, number of records n: uint32
//	56  n times seq int64
//	    n times labels [4]uint64
//	    n times step, err: float32
//	    n times sum of codes uint64
//	    n times codes, stride(dimension) bytes
//	    CRC-32C of all before it
const (
	magic      = "rye codes 7bit\x00\x01"
	headerSize = 56
	recordSize = 8 + 4*8 + 4 + 4 + 8 // without codes
	crcSize    = 4
)

// fileSize is how many bytes a file has.
func fileSize(dimension, records int) int {
	return headerSize + records*(recordSize+stride(dimension)) + crcSize
}

// Chapter are the codes of some vectors, as they are in a file.
type Chapter struct {
	name Name
	n    int
	// The columns of the file.
	seqs, labels, steps, errs, sums, codes []byte
}

// ErrDamaged says that bytes are not the chapter that they should be.
var ErrDamaged = errors.New("damaged file of codes")

// Build codes vectors as the bytes of a file. Records are in the order of Seq.
func Build(name Name, records []Record) ([]byte, error) {
	if len(records) > MaxRecords || name.Dimension < 1 || name.Dimension > MaxDimension {
		return nil, fmt.Errorf("bug; %d records of %d dimensions are no chapter", len(records), name.Dimension)
	}
	b := make([]byte, 0, fileSize(name.Dimension, len(records)))
	b = append(append(b, magic...), name.Stamp[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(name.After))
	b = binary.LittleEndian.AppendUint64(b, uint64(name.Through))
	b = binary.LittleEndian.AppendUint32(b, uint32(name.Dimension))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(records)))
	c := Chapter{name: name, n: len(records)}
	c.columns(b[headerSize:cap(b)])
	last := name.After
	for i, r := range records {
		if len(r.Vector) != name.Dimension || r.Seq <= last || r.Seq > name.Through {
			return nil, fmt.Errorf("bug; record %d of %d dimensions is not of this chapter", r.Seq, len(r.Vector))
		}
		last = r.Seq
		c.set(i, r)
	}
	b = b[:cap(b)]
	binary.LittleEndian.PutUint32(b[len(b)-crcSize:], checksum(b))
	return b, nil
}

// columns parts what follows the header.
func (c *Chapter) columns(b []byte) {
	cut := func(size int) (column []byte) {
		column, b = b[:c.n*size:c.n*size], b[c.n*size:]
		return column
	}
	c.seqs, c.labels, c.steps, c.errs, c.sums = cut(8), cut(4*8), cut(4), cut(4), cut(8)
	c.codes = cut(stride(c.name.Dimension))
}

func (c *Chapter) set(i int, r Record) {
	code := NewCode(r.Vector)
	binary.LittleEndian.PutUint64(c.seqs[8*i:], uint64(r.Seq))
	for j, label := range r.Labels {
		binary.LittleEndian.PutUint64(c.labels[8*(4*i+j):], label)
	}
	binary.LittleEndian.PutUint32(c.steps[4*i:], math.Float32bits(float32(code.step)))
	// Rounded up: it is a bound.
	binary.LittleEndian.PutUint32(c.errs[4*i:], math.Float32bits(math.Nextafter32(float32(code.err), 2)))
	binary.LittleEndian.PutUint64(c.sums[8*i:], code.sum)
	copy(c.codes[i*len(code.codes):], code.codes)
}

func checksum(file []byte) uint32 {
	return crc32.Checksum(file[:len(file)-crcSize], crc32.MakeTable(crc32.Castagnoli))
}

// Parse reads the bytes of a file, which must be those of a chapter and whole. The chapter
// refers to them.
func Parse(name Name, file []byte) (Chapter, error) {
	c := Chapter{name: name}
	if len(file) < headerSize+crcSize || string(file[:len(magic)]) != magic {
		return c, fmt.Errorf("%w: it has another form", ErrDamaged)
	}
	field := func(at int) int64 { return int64(binary.LittleEndian.Uint64(file[at:])) }
	dimension, records := binary.LittleEndian.Uint32(file[48:]), binary.LittleEndian.Uint32(file[52:])
	switch {
	case !bytes.Equal(file[16:32], name.Stamp[:]), field(32) != name.After, field(40) != name.Through, int64(dimension) != int64(name.Dimension):
		return c, fmt.Errorf("%w: it is of another chapter", ErrDamaged)
	case records > MaxRecords, dimension == 0 || dimension > MaxDimension, len(file) != fileSize(int(dimension), int(records)):
		return c, fmt.Errorf("%w: its size is not that of its content", ErrDamaged)
	case binary.LittleEndian.Uint32(file[len(file)-crcSize:]) != checksum(file):
		return c, fmt.Errorf("%w: its checksum differs", ErrDamaged)
	}
	c.n = int(records)
	c.columns(file[headerSize:])
	return c, nil
}

// Len is how many records there are.
func (c Chapter) Len() int { return c.n }

// Search puts the records that are selected into top, by the most that their cosine with a
// query can be.
func (c Chapter) Search(query Code, selected func(*Labels) bool, top *Top) {
	if query.dimension != c.name.Dimension {
		return
	}
	size := stride(c.name.Dimension)
	var labels Labels
	for i := range c.n {
		if selected != nil {
			for j := range labels {
				labels[j] = binary.LittleEndian.Uint64(c.labels[8*(4*i+j):])
			}
			if !selected(&labels) {
				continue
			}
		}
		step := math.Float32frombits(binary.LittleEndian.Uint32(c.steps[4*i:]))
		err := math.Float32frombits(binary.LittleEndian.Uint32(c.errs[4*i:]))
		sum := binary.LittleEndian.Uint64(c.sums[8*i:])
		bound := query.bound(c.codes[i*size:(i+1)*size], float64(step), sum, float64(err))
		top.Add(Bounded{Seq: int64(binary.LittleEndian.Uint64(c.seqs[8*i:])), Bound: bound})
	}
}

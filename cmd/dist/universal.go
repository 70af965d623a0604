package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// fatSlice is a program for one processor of macOS.
type fatSlice struct {
	arch string
	data []byte
}

// processors are those of the header of a universal binary (<mach/machine.h>):
// type, subtype, and the exponent of the alignment that linkers use.
var processors = map[string][3]uint32{
	"amd64": {0x01000007, 3, 12},
	"arm64": {0x0100000c, 0, 14},
}

const fatMagic = 0xcafebabe // FAT_MAGIC of <mach-o/fat.h>

// universal joins programs to one that runs on all their processors, as lipo(1)
// does: a big-endian header, a record for each, then their bytes, aligned. The
// signature of each stays valid, since it covers only its own bytes.
func universal(slices []fatSlice) ([]byte, error) {
	header := binary.BigEndian.AppendUint32(nil, fatMagic)
	header = binary.BigEndian.AppendUint32(header, uint32(len(slices)))
	offset := uint64(len(header) + 20*len(slices)) // a record is five words
	var body bytes.Buffer
	body.Grow(int(offset))
	starts := make([]uint64, len(slices))
	for i, s := range slices {
		kind, known := processors[s.arch]
		if !known {
			return nil, fmt.Errorf("no universal binary for %s", s.arch)
		}
		align := uint64(1) << kind[2]
		starts[i] = (offset + align - 1) / align * align
		offset = starts[i] + uint64(len(s.data))
		if offset > 1<<32-1 {
			return nil, fmt.Errorf("a universal binary ends at 4 GiB, this one at %d bytes", offset)
		}
		for _, word := range []uint32{kind[0], kind[1], uint32(starts[i]), uint32(len(s.data)), kind[2]} {
			header = binary.BigEndian.AppendUint32(header, word)
		}
	}
	body.Write(header)
	for i, s := range slices {
		body.Write(make([]byte, starts[i]-uint64(body.Len())))
		body.Write(s.data)
	}
	return body.Bytes(), nil
}

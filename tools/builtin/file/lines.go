package file

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// line is one line of a file, as bytes: files need not be UTF-8.
type line struct {
	text []byte
	end  string // "\n", "\r\n", or "" for a last line without one
}

// splitLines cuts data into lines; join puts them together again byte for byte.
func splitLines(data []byte) []line {
	var lines []line
	for len(data) > 0 {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			return append(lines, line{text: data})
		}
		l := line{text: data[:i], end: "\n"}
		if i > 0 && data[i-1] == '\r' {
			l = line{text: data[:i-1], end: "\r\n"}
		}
		lines = append(lines, l)
		data = data[i+1:]
	}
	return lines
}

func join(lines []line) []byte {
	var b bytes.Buffer
	for _, l := range lines {
		b.Write(l.text)
		b.WriteString(l.end)
	}
	return b.Bytes()
}

// maxContext is how many neighbours on each side tell equal lines apart before
// their order does.
const maxContext = 3

// lineIDs gives every line an id of six hexadecimal digits, unique in the file.
//
// The id is a hash of the line's text. Lines that would share one, because
// their text is equal or by accident, all get another, for which more is
// hashed each time: first the neighbours, from one to maxContext on each side,
// then which of the equal lines it is. An edit therefore leaves the ids of
// lines elsewhere as they are, and where two lines could be taken for each
// other, a change that makes or resolves the doubt withdraws the ids of both.
func lineIDs(lines []line) []string {
	h := newHasher(lines)
	ids := make([]uint32, len(lines))
	depth := make([]int, len(lines))
	for {
		owner := make(map[uint32]int, len(lines)) // id → first line with it, plus one
		var shared []int
		for i := range lines {
			ids[i] = h.id(i, depth[i])
			first := owner[ids[i]]
			if first == 0 {
				owner[ids[i]] = i + 1
				continue
			}
			if first > 0 {
				shared = append(shared, first-1)
				owner[ids[i]] = -1
			}
			shared = append(shared, i)
		}
		if len(shared) == 0 {
			return hexIDs(ids)
		}
		for _, i := range shared {
			depth[i]++
		}
	}
}

func hexIDs(ids []uint32) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = fmt.Sprintf("%06x", id)
	}
	return out
}

type hasher struct {
	sums    [][sha256.Size]byte // of each line's text
	ordinal []uint32            // how many earlier lines have the same text
}

func newHasher(lines []line) *hasher {
	h := &hasher{sums: make([][sha256.Size]byte, len(lines)), ordinal: make([]uint32, len(lines))}
	seen := make(map[[sha256.Size]byte]uint32, len(lines))
	for i, l := range lines {
		h.sums[i] = sha256.Sum256(l.text)
		h.ordinal[i] = seen[h.sums[i]]
		seen[h.sums[i]]++
	}
	return h
}

// id is the first 24 bits of a hash over what depth asks for.
func (h *hasher) id(i, depth int) uint32 {
	if depth == 0 {
		return first24(h.sums[i])
	}
	around := min(depth, maxContext)
	buf := make([]byte, 0, (2*maxContext+1)*sha256.Size+8)
	for j := i - around; j <= i+around; j++ {
		if j < 0 || j >= len(h.sums) {
			buf = append(buf, 0) // so that the edge of the file counts as a neighbour
			continue
		}
		buf = append(buf, h.sums[j][:]...)
	}
	if depth > maxContext {
		buf = binary.BigEndian.AppendUint32(buf, h.ordinal[i])
		buf = binary.BigEndian.AppendUint32(buf, uint32(depth))
	}
	return first24(sha256.Sum256(buf))
}

func first24(sum [sha256.Size]byte) uint32 {
	return uint32(sum[0])<<16 | uint32(sum[1])<<8 | uint32(sum[2])
}

// maxShown is how much of one line is shown, in bytes.
const maxShown = 1000

// show renders line n (from 1) for a model.
func show(n int, id string, l line) string {
	return fmt.Sprintf("%d:%s|%s", n, id, cutText(l.text))
}

// cutText makes text showable: valid UTF-8 and at most maxShown bytes of it.
func cutText(text []byte) string {
	if len(text) <= maxShown {
		return strings.ToValidUTF8(string(text), "\uFFFD")
	}
	return fmt.Sprintf("%s… [line cut, %d bytes in all]", strings.ToValidUTF8(string(item.Begin(text, maxShown)), "\uFFFD"), len(text))
}

// sniffBytes is how much of a file decides whether it is text.
const sniffBytes = 8 << 10

// isBinary says whether data looks like no text: a NUL byte near its start.
func isBinary(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), sniffBytes)], 0) >= 0
}

package secret

import (
	"slices"
	"sort"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/inputs"
)

// head is how many bytes at the beginning of a form tell where it may be found.
const head = 8

// No form is shorter than the shortest secret, nor than its head.
const _ = uint(inputs.MinSecret - head)

// form is one way to write a value.
type form struct{ text, placeholder string }

// finder finds forms in one pass over a text, however many there are: a key of
// some kilobytes has thousands.
type finder struct {
	forms   []form
	byHead  map[uint64][]int           // places in forms
	headBit [1 << hashBits / 64]uint64 // by the hash of a head; where it is 0 nothing begins
}

const hashBits = 16

func newFinder(forms []form) *finder {
	f := &finder{forms: forms, byHead: make(map[uint64][]int, len(forms))}
	for i, n := range forms {
		var word uint64
		for _, c := range []byte(n.text[:head]) {
			word = push(word, c)
		}
		f.byHead[word] = append(f.byHead[word], i)
		place, bit := hashOf(word)
		f.headBit[place] |= bit
	}
	return f
}

// push moves a window of eight bytes on by one.
func push(word uint64, c byte) uint64 { return word>>8 | uint64(c)<<56 }

// hashOf is the place of a head in [finder.headBit].
func hashOf(word uint64) (place, bit uint64) {
	const golden = 0x9E3779B97F4A7C15 // spreads words evenly
	h := word * golden >> (64 - hashBits)
	return h / 64, 1 << (h % 64)
}

// each yields where forms stand in a text. The same form is not found again
// within itself.
func (f *finder) each(text string) func(yield func(start int, n form) bool) {
	return func(yield func(int, form) bool) {
		var behind []int // the last place where each form was found
		var word uint64
		for i := range len(text) {
			word = push(word, text[i])
			if place, bit := hashOf(word); f.headBit[place]&bit == 0 {
				continue
			}
			start := i - head + 1
			for _, n := range f.byHead[word] {
				if start < 0 || behind != nil && start < behind[n] || !strings.HasPrefix(text[start:], f.forms[n].text) {
					continue
				}
				if behind == nil {
					behind = make([]int, len(f.forms))
				}
				behind[n] = start + len(f.forms[n].text)
				if !yield(start, f.forms[n]) {
					return
				}
			}
		}
	}
}

// begun is the length of the longest beginning of a form, not all of it, that a text
// ends with.
func (f *finder) begun(text string) int {
	longest := 0
	for n := 1; n < head && n <= len(text); n++ {
		end := text[len(text)-n:]
		if slices.ContainsFunc(f.forms, func(one form) bool { return strings.HasPrefix(one.text, end) }) {
			longest = n
		}
	}
	var word uint64
	for i := range len(text) {
		word = push(word, text[i])
		start := i - head + 1
		if place, bit := hashOf(word); start < 0 || f.headBit[place]&bit == 0 {
			continue
		}
		for _, n := range f.byHead[word] {
			if one := f.forms[n].text; len(one) > len(text)-start && strings.HasPrefix(one, text[start:]) {
				return len(text) - start // the first one is the longest
			}
		}
	}
	return longest
}

// lineBreaks are the characters that break a text into lines, as they are and
// escaped as in JSON, where what looks like an escape may be part of a value.
var lineBreaks = [...][]string{{"\n", "\r"}, {`\n`, `\r`, "\n", "\r"}}

// joined is a text without some line breaks.
type joined struct {
	text   string
	pieces []piece // none: it is the whole text
}

// piece is a part of a text that no line break interrupts.
type piece struct{ at, from int } // where it begins in the joined text, and in the whole

// join takes line breaks out of a text.
func join(text string, breaks []string) joined {
	var (
		b    strings.Builder
		j    joined
		from int
	)
	for i := 0; ; {
		next := strings.IndexAny(text[i:], "\n\r\\")
		if next < 0 {
			break
		}
		i += next
		size := breakAt(text[i:], breaks)
		if size == 0 {
			i++
			continue
		}
		j.pieces = append(j.pieces, piece{b.Len(), from})
		b.WriteString(text[from:i])
		i += size
		from = i
	}
	if j.pieces == nil {
		return joined{text: text}
	}
	j.pieces = append(j.pieces, piece{b.Len(), from})
	b.WriteString(text[from:])
	j.text = b.String()
	return j
}

// whole is where a byte of the joined text stands in the whole.
func (j joined) whole(i int) int {
	n := sort.Search(len(j.pieces), func(n int) bool { return j.pieces[n].at > i }) - 1
	return j.pieces[n].from + i - j.pieces[n].at
}

// breakAt is the length of the line break that a text begins with.
func breakAt(text string, breaks []string) int {
	for _, s := range breaks {
		if strings.HasPrefix(text, s) {
			return len(s)
		}
	}
	return 0
}

package server

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

const (
	// DefaultRoom is the longest answer to a call that asks for no other, in bytes of
	// JSON: what the strictest client shows its model.
	DefaultRoom = 12_000
	// leastText is what a text is given of the room, at least, before lists are cut for
	// it; mostForTexts bounds that where there are few texts.
	leastText    = 300
	mostForTexts = 2_000
	// leastTight is the least room that an answer keeps to whatever is in it; in less,
	// what has a shape keeps it.
	leastTight = 3_000
	// leastOfThread is the least for a text that a thread has left: there may be many,
	// and the call that reads it is short.
	leastOfThread = 120
	// markRoom is left for what stands at the end of a text that was cut, noteRoom for
	// the member cut, and listRoom for each list in it.
	markRoom = 150
	noteRoom = 250
	listRoom = 320
)

// fitter makes an answer as short as the call allows. It keeps what it leaves out,
// unless the result says where that can be read anyway.
type fitter struct {
	room   int
	result any   // what the answer is of; it may be a [tool.Keeper]
	kept   *kept // takes what can be read nowhere else
	calls  calls // that read it
	top    *node // the answer
	cut    cutNote
	// whole has the values as they were before lists were cut, by those of the answer.
	whole map[*node]*node
}

// cutNote is the member cut of an answer.
type cutNote struct {
	WholeBytes int       `json:"whole_bytes"`     // of the answer
	Texts      int       `json:"texts,omitempty"` // that end with the call that reads on
	Read       string    `json:"read,omitempty"`  // that call, where there is no room to repeat all of it
	Lists      []cutList `json:"lists,omitempty"`
}

// cutList is a list, or an object, of which only the beginning is shown.
type cutList struct {
	At    string `json:"at"`
	Shown int    `json:"shown"`
	Of    int    `json:"of"`
	Read  string `json:"read"`
	list  *node
}

// fit is data within the room of the call: short members stay, long texts keep
// their beginning, each the same share, and then lists do.
func (f *fitter) fit(data []byte) []byte {
	if len(data) <= f.room {
		return data
	}
	var err error
	if f.top, err = parseTree(data); err != nil || f.top.open != '{' {
		return data
	}
	f.cut.WholeBytes = len(data)
	texts := f.texts()
	if f.missing(texts, 0) > 0 {
		f.remember(data)
	}
	for f.missing(texts, 0) > 0 && (f.cutList(texts) || f.asText()) {
		texts = f.texts()
	}
	f.cutTexts(texts)
	note, err := nodeOf(f.cut)
	if err != nil {
		return data
	}
	f.top.insert(1, "cut", note)
	if short := f.top.JSON(); len(short) < len(data) {
		return short
	}
	return data // to say where the rest is would take more than the rest
}

// texts are those that can be cut, with the least that each is given.
func (f *fitter) texts() []longText {
	texts := f.textsOf(f.top, nil, nil)
	setLeast(texts, f.room)
	return texts
}

// longText is a text of an answer that can be cut.
type longText struct {
	*node
	place []string
	size  int         // in JSON
	least int         // that it is given
	whole *tool.Whole // where all of it is, if the result knows
}

// textsOf lists the texts that are long enough to be cut.
func (f *fitter) textsOf(n *node, place []string, found []longText) []longText {
	if n.open == '"' {
		t := longText{node: n, place: place, size: tool.SizeInJSON(n.raw)}
		if whole, known := tool.WholeOf(f.result, place); known && f.calls.transcript(whole, 0) != "" {
			t.whole = &whole
		}
		if t.size > leastText || t.whole != nil && t.size > leastOfThread {
			found = append(found, t)
		}
		return found
	}
	for i, kid := range n.kids {
		found = f.textsOf(kid, append(place[:len(place):len(place)], n.name(i)), found)
	}
	return found
}

// setLeast says how much of each text lists are cut for.
func setLeast(texts []longText, room int) {
	least := min(max(leastText, room/4/max(1, len(texts))), mostForTexts)
	for i, t := range texts {
		texts[i].least = min(t.size, least)
		if t.whole != nil && least < 2*leastText {
			texts[i].least = min(t.size, leastOfThread)
		}
	}
}

// missing is how much room is missing for the least of all texts, and for so many
// further lists of the note.
func (f *fitter) missing(texts []longText, lists int) int {
	size := f.top.size() + noteRoom + (len(f.cut.Lists)+lists)*listRoom
	for _, t := range texts {
		size += t.least - t.size
	}
	return size - f.room
}

// share is the most that each may have so that all together have no more than
// the budget.
func share(sizes []int, budget int) int {
	slices.Sort(sizes)
	for i, size := range sizes {
		if fair := budget / (len(sizes) - i); size > fair {
			return fair
		}
		budget -= size
	}
	return math.MaxInt
}

// cutTexts shortens the texts that take more than their share of the room. Where
// that is little, the mark of what a thread has left is short, and the note has the
// call.
func (f *fitter) cutTexts(texts []longText) {
	budget := -f.missing(texts, 0)
	var sizes []int
	for _, t := range texts {
		budget += t.least
		sizes = append(sizes, t.size)
	}
	most := share(sizes, budget)
	ofThreads := most
	if most < leastText { // those that need a long mark have their least
		sizes = nil
		for _, t := range texts {
			if t.whole == nil {
				budget -= t.least
			} else {
				sizes = append(sizes, t.size)
			}
		}
		ofThreads = share(sizes, budget)
	}
	for _, t := range texts {
		if t.whole == nil {
			f.cutText(t, max(most, t.least), false)
		} else {
			f.cutText(t, max(ofThreads, leastOfThread), ofThreads < leastText)
		}
	}
}

// cutText shortens a text to most bytes.
func (f *fitter) cutText(t longText, most int, terse bool) {
	if t.size <= most {
		return
	}
	f.cut.Texts++
	room := most - markRoom
	if terse {
		f.cut.Read = f.calls.transcript(tool.Whole{ThreadID: "<its id>", Part: "<part>"}, 0)
		room = most - markRoom/2
	}
	shown := tool.FitsJSON(t.raw, max(room, leastOfThread/4))
	call := f.readOn(t, shown)
	if terse {
		call = strings.Join(partAndCursor(*t.whole, shown), " ")
	}
	t.raw = fmt.Sprintf("%s… [%d more bytes: %s]", t.raw[:shown], len(t.raw)-shown, call)
}

// readOn is the call that reads a text from a byte on.
func (f *fitter) readOn(t longText, from int) string {
	if t.whole != nil {
		return f.calls.transcript(*t.whole, from)
	}
	return f.calls.kept(f.kept.put(t.raw), from)
}

// cutList leaves out the end of the largest list, or of an object with many
// members, so that each text has its least; false when there is none.
func (f *fitter) cutList(texts []longText) bool {
	excess := f.missing(texts, 1)
	n, place := largestList(f.top, isList)
	if n == nil {
		if f.room < leastTight {
			return false
		}
		if n, place = largestList(f.top, func([]string, *node) bool { return true }); n == nil {
			return false
		}
	}
	of := len(n.kids)
	for len(n.kids) > 1 && excess > 0 {
		last := len(n.kids) - 1
		excess -= shownSize(n.kids[last])
		n.remove(last)
	}
	if i := slices.IndexFunc(f.cut.Lists, func(l cutList) bool { return l.list == n }); i >= 0 {
		f.cut.Lists[i].Shown = len(n.kids)
		return len(n.kids) < of
	}
	f.cut.Lists = append(f.cut.Lists, cutList{list: n, At: placeName(place), Shown: len(n.kids), Of: of, Read: f.calls.kept(f.kept.put(string(f.whole[n].JSON())), 0)})
	return true
}

// placeName says where a list is, in the room that each has in the note.
func placeName(place []string) string {
	const most = 60
	names := slices.Clone(place)
	for i, name := range names {
		names[i] = item.Clip(name, most)
	}
	return item.Clip(strings.Join(names, "."), 2*most)
}

// remember reads the answer once more, to have what is kept of lists whole.
func (f *fitter) remember(data []byte) {
	f.whole = map[*node]*node{}
	top, err := parseTree(data)
	if err != nil {
		return // it was read before
	}
	f.pair(f.top, top)
}

func (f *fitter) pair(shown, whole *node) {
	f.whole[shown] = whole
	for i, kid := range shown.kids {
		f.pair(kid, whole.kids[i])
	}
}

// asText makes a text of the largest value that is neither text nor list, such as an
// object with a name of a megabyte: its beginning is shown, as of other texts. False
// when there is none.
func (f *fitter) asText() bool {
	var largest *node
	for _, kid := range f.top.kids {
		if kid.open != '"' && (largest == nil || kid.size() > largest.size()) {
			largest = kid
		}
	}
	if largest == nil || largest.size() <= leastText || f.room < leastTight {
		return false
	}
	f.cut.Lists = slices.DeleteFunc(f.cut.Lists, func(l cutList) bool { return largest.has(l.list) })
	*largest = *textNode(string(f.whole[largest].JSON()))
	return true
}

// shownSize is what a value takes at least, once its texts are as short as they
// get.
func shownSize(n *node) int {
	if n.open == '"' {
		return min(tool.SizeInJSON(n.raw), leastOfThread) + len(`"",`)
	}
	if n.open == 0 {
		return len(n.raw) + len(`,`)
	}
	size := len(`[],`)
	for i, kid := range n.kids {
		size += shownSize(kid)
		if n.open == '{' {
			size += len(n.keys[i]) + len(`"":`)
		}
	}
	return size - min(1, len(n.kids)) // the last has no comma
}

// manyMembers is from how many members on an object is taken for a list. Those of
// one thing have fewer, and lose none as long as there is another way.
const manyMembers = 24

// isList reports whether members of a value can be left out: it is a list, or an
// object with very many members, or one whose members are named by ids, as the
// results of threads are.
func isList(place []string, n *node) bool {
	if n.open == '[' || len(n.kids) >= manyMembers {
		return true
	}
	return len(place) == 1 && !slices.ContainsFunc(n.kids, func(kid *node) bool { return kid.open != '{' })
}

// largestList goes down from the top where most of the bytes are, and finds the
// first value with several members that is wanted.
func largestList(top *node, wanted func(place []string, n *node) bool) (*node, []string) {
	n, place := top, []string(nil)
	for {
		if len(place) > 0 && len(n.kids) > 1 && wanted(place, n) {
			return n, place
		}
		largest, size := -1, 0
		for i, kid := range n.kids {
			if s := shownSize(kid); len(kid.kids) > 0 && s > size {
				largest, size = i, s
			}
		}
		if largest < 0 {
			return nil, nil
		}
		place = append(place, n.name(largest))
		n = n.kids[largest]
	}
}

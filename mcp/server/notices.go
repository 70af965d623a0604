package server

import (
	"bytes"
	"slices"
	"sync"
)

const (
	// warningsMember has the warnings of an answer, or of one of its parts.
	warningsMember = "warnings"
	// noticesMember has what an answer tells for its whole place.
	noticesMember = "settings_warnings"
)

// noticeSource are the warnings that hold for a place.
type noticeSource struct {
	place string
	list  func() []string
}

// noticeBoard remembers what was told about each place, so that the same warnings
// do not stand in every answer of a server.
type noticeBoard struct {
	mu     sync.Mutex
	places map[string]map[string]bool // by place: notices that were told
}

// tell takes notices out of the warnings of an answer and adds those that were not
// told yet, at its end.
func (b *noticeBoard) tell(from *noticeSource, data []byte) []byte {
	if from == nil {
		return data
	}
	b.mu.Lock()
	told, visited := b.places[from.place]
	b.mu.Unlock()
	if visited && !bytes.Contains(data, []byte(`"`+warningsMember+`":[`)) {
		return data
	}
	now := from.list()
	top, err := parseTree(data)
	if err != nil || top.open != '{' || len(now) == 0 && len(told) == 0 {
		b.visit(from.place, nil)
		return data
	}
	news := b.visit(from.place, now)
	known := func(w string) bool { return slices.Contains(now, w) || told[w] }
	changed := dropNotices(top, known)
	if len(news) > 0 {
		if list, err := nodeOf(news); err == nil {
			top.insert(len(top.kids), noticesMember, list)
			changed = true
		}
	}
	if !changed {
		return data
	}
	return top.JSON()
}

// visit records notices of a place as told, and returns those that are new.
func (b *noticeBoard) visit(place string, now []string) (news []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.places == nil {
		b.places = map[string]map[string]bool{}
	}
	before := b.places[place]
	// A map that is never changed can be read without the lock.
	told := make(map[string]bool, len(now))
	for w := range before {
		told[w] = true
	}
	for _, w := range now {
		if !told[w] {
			news = append(news, w)
		}
		told[w] = true
	}
	b.places[place] = told
	return news
}

// dropNotices takes the notices out of all lists of warnings, and lists that were
// nothing else away.
func dropNotices(n *node, known func(string) bool) (changed bool) {
	for i := len(n.kids) - 1; i >= 0; i-- {
		kid := n.kids[i]
		if n.open != '{' || n.keys[i] != warningsMember || kid.open != '[' {
			changed = dropNotices(kid, known) || changed
			continue
		}
		before := len(kid.kids)
		kid.kids = slices.DeleteFunc(kid.kids, func(w *node) bool { return w.open == '"' && known(w.raw) })
		changed = changed || len(kid.kids) < before
		if before > 0 && len(kid.kids) == 0 {
			n.remove(i)
		}
	}
	return changed
}

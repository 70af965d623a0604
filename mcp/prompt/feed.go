package prompt

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
)

// Items tells when items of a project may have changed.
type Items interface {
	Listen(changed func()) (stop func(), err error)
}

// Feed is a library whose list is told of when it changes. However many want to be
// told, the directives are looked at once. It is safe for concurrent use.
type Feed struct {
	*Library
	Items Items

	mu      sync.Mutex
	known   []Prompt // as it was listed, or told of, last
	tellers map[int]func()
	next    int
	stop    func() // listening to Items; nil when nobody wants to be told
}

// List is [Library.List].
func (f *Feed) List(ctx context.Context) ([]Prompt, error) {
	list, err := f.Library.List(ctx)
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.stop == nil || f.known == nil {
			f.known = list
		}
	}
	return list, err
}

// Subscribe calls changed when the list is another than it was, until stop is called.
func (f *Feed) Subscribe(changed func()) (stop func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stop == nil {
		if f.stop, err = f.Items.Listen(f.look); err != nil {
			return nil, fmt.Errorf("changes of prompts are not told: %w", err)
		}
		f.tellers = map[int]func(){}
	}
	id := f.next
	f.next++
	f.tellers[id] = changed
	return func() { f.leave(id) }, nil
}

func (f *Feed) leave(id int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.tellers, id)
	if len(f.tellers) == 0 && f.stop != nil {
		f.stop()
		f.stop = nil
	}
}

// look lists anew and tells of a difference. Where nothing can be listed there is
// something to tell: asking will say what is wrong.
func (f *Feed) look() {
	list, err := f.Library.List(context.Background())
	f.mu.Lock()
	same := err == nil && reflect.DeepEqual(list, f.known)
	f.known = list
	tellers := slices.Collect(maps.Values(f.tellers))
	f.mu.Unlock()
	if same {
		return
	}
	for _, changed := range tellers {
		changed()
	}
}

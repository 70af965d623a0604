package prompt_test

import (
	"testing"

	"github.com/rye-mcp/rye-mcp/mcp/prompt"
)

// items are told to have changed by the test.
type items struct {
	changed func()
	stopped int
}

func (i *items) Listen(changed func()) (func(), error) {
	i.changed = changed
	return func() { i.changed = nil; i.stopped++ }, nil
}

func TestFeed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	i := &items{}
	feed := &prompt.Feed{Library: h.Library, Items: i}
	if _, err := feed.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.put(h.project, "early", "Came before anybody wanted to be told", "", "Do it.")
	h.sign()
	told := [2]int{}
	var stops [2]func()
	for n := range told {
		var err error
		if stops[n], err = feed.Subscribe(func() { told[n]++ }); err != nil {
			t.Fatal(err)
		}
	}
	want := func(what string, first, second int) {
		t.Helper()
		if told != [2]int{first, second} {
			t.Errorf("%s: told %v, want %d and %d", what, told, first, second)
		}
	}
	i.changed()
	want("one more than was listed", 1, 1)
	i.changed()
	want("nothing", 1, 1)
	h.put(h.project, "unsigned", "Not offered", "", "Do it.")
	i.changed()
	want("one that is not offered", 1, 1)
	h.put(h.project, "early", "Says something else", "", "Do it.")
	h.sign()
	if _, err := feed.List(t.Context()); err != nil { // of another client, before it is told
		t.Fatal(err)
	}
	i.changed()
	want("another description", 2, 2)
	stops[0]()
	h.write(h.project, ".ai/directives/early.md", "broken")
	i.changed()
	want("one that is offered no more", 2, 3)
	stops[1]()
	stops[1]()
	if i.stopped != 1 || i.changed != nil {
		t.Errorf("it listens when nobody wants to be told: stopped %d times", i.stopped)
	}
}

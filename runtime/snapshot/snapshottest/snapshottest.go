// Package snapshottest is the contract of [snapshot.Store], for every implementation.
package snapshottest

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/snapshot"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Clock is a clock that tests set. It is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock is a clock at some time of day.
func NewClock() *Clock { return &Clock{now: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)} }

// Now is the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Add moves the clock.
func (c *Clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Run runs the contract. Open returns a new, empty store by a clock; two that it returns
// for one test share nothing.
func Run(t *testing.T, open func(t *testing.T, clock *Clock) snapshot.Store) {
	for name, group := range map[string]func(*testing.T, snapshot.Store, *Clock){
		"contents":      contents,
		"wrong content": wrongContent,
		"used":          used,
		"removed":       removed,
		"names":         names,
		"bad hashes":    badHashes,
		"many writers":  manyWriters,
		"large":         large,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := NewClock()
			group(t, open(t, clock), clock)
		})
	}
}

func put(t *testing.T, s snapshot.Store, content string) snapshot.Hash {
	t.Helper()
	h := snapshot.HashOf([]byte(content))
	if err := s.Put(t.Context(), h, int64(len(content)), strings.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	return h
}

func all(t *testing.T, s snapshot.Store) map[snapshot.Hash]snapshot.Blob {
	t.Helper()
	found := map[snapshot.Hash]snapshot.Blob{}
	for b, err := range s.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := found[b.Hash]; twice {
			t.Errorf("%s is listed twice", b.Hash)
		}
		found[b.Hash] = b
	}
	return found
}

func contents(t *testing.T, s snapshot.Store, clock *Clock) {
	if got := all(t, s); len(got) != 0 {
		t.Errorf("a new store has %v", got)
	}
	for _, content := range []string{"", "a", "\x00\xff", "two\nlines"} {
		h := put(t, s, content)
		put(t, s, content) // once more is no error
		got, err := snapshot.ReadAll(t.Context(), s, h, 100)
		if err != nil || string(got) != content {
			t.Errorf("read %q, %v; want %q", got, err, content)
		}
		b, err := s.Stat(t.Context(), h)
		if want := (snapshot.Blob{Hash: h, Size: int64(len(content)), UsedAt: b.UsedAt}); err != nil || b != want || !b.UsedAt.Equal(clock.Now()) {
			t.Errorf("Stat is %+v, %v", b, err)
		}
		if listed := all(t, s)[h]; listed.Size != int64(len(content)) || !listed.UsedAt.Equal(clock.Now()) {
			t.Errorf("listed is %+v", listed)
		}
	}
	missing := snapshot.HashOf([]byte("missing"))
	if _, err := s.Get(t.Context(), missing); !isMissing(err, missing) {
		t.Errorf("Get of what is missing: %v", err)
	}
	if _, err := s.Stat(t.Context(), missing); !isMissing(err, missing) {
		t.Errorf("Stat of what is missing: %v", err)
	}
}

func isMissing(err error, h snapshot.Hash) bool {
	e, ok := errors.AsType[*snapshot.MissingError](err)
	return ok && e.Hash == h && errors.Is(err, snapshot.ErrUnusable)
}

func wrongContent(t *testing.T, s snapshot.Store, _ *Clock) {
	h := snapshot.HashOf([]byte("right"))
	for _, row := range []struct {
		content string
		size    int64
	}{{"wrong", 5}, {"right", 4}, {"right", 6}, {"right and more", 5}, {"", 0}, {"righ", 5}} {
		err := s.Put(t.Context(), h, row.size, strings.NewReader(row.content))
		if e, ok := errors.AsType[*snapshot.AlteredError](err); !ok || e.Hash != h {
			t.Errorf("Put %q as %d bytes of another hash: %v", row.content, row.size, err)
		}
	}
	broken := errors.New("the reader broke")
	if err := s.Put(t.Context(), h, 5, io.MultiReader(strings.NewReader("ri"), failing{broken})); !errors.Is(err, broken) {
		t.Errorf("Put of what cannot be read: %v", err)
	}
	if got := all(t, s); len(got) != 0 {
		t.Errorf("it keeps %v", got)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func used(t *testing.T, s snapshot.Store, clock *Clock) {
	a, b, missing := put(t, s, "a"), put(t, s, "b"), snapshot.HashOf([]byte("missing"))
	first := clock.Now()
	clock.Add(time.Hour)
	got, err := s.Use(t.Context(), []snapshot.Hash{missing, a, missing})
	if err != nil || !slices.Equal(got, []snapshot.Hash{missing, missing}) {
		t.Errorf("missing are %v, %v", got, err)
	}
	if now := all(t, s); !now[a].UsedAt.Equal(clock.Now()) || !now[b].UsedAt.Equal(first) {
		t.Errorf("used at %v and %v", now[a].UsedAt, now[b].UsedAt)
	}
	put(t, s, "b")
	if now := all(t, s); !now[b].UsedAt.Equal(clock.Now()) {
		t.Errorf("what was put again was used at %v", now[b].UsedAt)
	}
	if got, err := s.Use(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("of nothing %v is missing, %v", got, err)
	}
}

func removed(t *testing.T, s snapshot.Store, clock *Clock) {
	a, b := put(t, s, "a"), put(t, s, "b")
	clock.Add(time.Hour)
	since := clock.Now()
	if _, err := s.Use(t.Context(), []snapshot.Hash{b}); err != nil {
		t.Fatal(err)
	}
	for h, want := range map[snapshot.Hash]bool{a: true, b: false, snapshot.HashOf([]byte("missing")): false} {
		if got, err := s.Remove(t.Context(), h, since); err != nil || got != want {
			t.Errorf("Remove is %v, %v; want %v", got, err, want)
		}
	}
	if now := all(t, s); len(now) != 1 || now[b].Hash != b {
		t.Errorf("left are %v", now)
	}
	if _, err := s.Get(t.Context(), a); !isMissing(err, a) {
		t.Errorf("Get of what was removed: %v", err)
	}
	put(t, s, "a")
	if got, err := snapshot.ReadAll(t.Context(), s, a, 1); err != nil || string(got) != "a" {
		t.Errorf("put again it is %q, %v", got, err)
	}
}

func names(t *testing.T, s snapshot.Store, clock *Clock) {
	long := thread.ID("team/" + strings.Repeat("long", 60) + "/task-1")
	one, two := snapshot.HashOf([]byte("one")), snapshot.HashOf([]byte("two"))
	for _, ref := range []snapshot.Reference{{Thread: "a/b-1", Snapshot: one}, {Thread: long, Snapshot: one}, {Thread: "a/b-1", Snapshot: two}} {
		if err := s.Name(t.Context(), ref.Thread, ref.Snapshot); err != nil {
			t.Fatal(err)
		}
	}
	named := func() map[thread.ID]snapshot.Hash {
		found := map[thread.ID]snapshot.Hash{}
		for ref, err := range s.Named(t.Context()) {
			if err != nil || !ref.At.Equal(clock.Now()) {
				t.Errorf("%+v, %v", ref, err)
			}
			found[ref.Thread] = ref.Snapshot
		}
		return found
	}
	if got := named(); len(got) != 2 || got["a/b-1"] != two || got[long] != one {
		t.Errorf("named are %v", got)
	}
	for range 2 {
		if err := s.Forget(t.Context(), "a/b-1"); err != nil {
			t.Error(err)
		}
	}
	if got := named(); len(got) != 1 || got[long] != one {
		t.Errorf("after one was forgotten named are %v", got)
	}
}

func badHashes(t *testing.T, s snapshot.Store, clock *Clock) {
	for _, h := range []snapshot.Hash{"", "..", "../../../etc/passwd", snapshot.Hash(strings.Repeat("A", 64)), snapshot.Hash(strings.Repeat("a", 63) + "/")} {
		_, get := s.Get(t.Context(), h)
		_, stat := s.Stat(t.Context(), h)
		_, use := s.Use(t.Context(), []snapshot.Hash{snapshot.HashOf(nil), h})
		_, remove := s.Remove(t.Context(), h, clock.Now())
		for what, err := range map[string]error{
			"get": get, "stat": stat, "use": use, "remove": remove,
			"put": s.Put(t.Context(), h, 0, strings.NewReader("")), "name": s.Name(t.Context(), "a/b-1", h),
		} {
			if err == nil {
				t.Errorf("%s takes %q", what, h)
			}
		}
	}
}

func manyWriters(t *testing.T, s snapshot.Store, _ *Clock) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 8 {
				content := strings.Repeat(string(rune('a'+(i+n)%8)), 1000)
				if err := s.Put(t.Context(), snapshot.HashOf([]byte(content)), 1000, strings.NewReader(content)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	now := all(t, s)
	if len(now) != 8 {
		t.Errorf("it keeps %d contents", len(now))
	}
	for h := range now {
		if _, err := snapshot.ReadAll(t.Context(), s, h, 1000); err != nil {
			t.Error(err)
		}
	}
}

func large(t *testing.T, s snapshot.Store, _ *Clock) {
	content := make([]byte, 9<<20+1)
	_, _ = rand.Read(content) // never fails
	h := snapshot.HashOf(content)
	if err := s.Put(t.Context(), h, int64(len(content)), bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	got, err := snapshot.ReadAll(t.Context(), s, h, snapshot.MaxFileBytes)
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	if _, err := snapshot.ReadAll(t.Context(), s, h, 100); !errors.Is(err, snapshot.ErrUnusable) {
		t.Errorf("more bytes than were asked for: %v", err)
	}
}

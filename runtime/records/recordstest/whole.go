package recordstest

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// whole: all records of a thread have a size and go at once, and those of another stay
// whose id begins with its own.
func whole(t *testing.T, s Subject) {
	inner := one + "/inner-1772357400"
	for _, id := range []thread.ID{one, inner} {
		of := prepared(t, s, id)
		must(t, of.Meta().Write(metaOf(id, 1)))
		_, err := of.Artifacts().Write(fmt.Sprintf("%064d", 1), make([]byte, 5000))
		must(t, err)
	}
	if n, err := s.Of(one).Whole().Size(); err != nil || n < 5000 {
		t.Errorf("size %d, %v", n, err)
	}
	for range 2 {
		must(t, s.Of(one).Whole().Remove())
	}
	if begun, err := s.Of(one).Begun(); begun || err != nil {
		t.Errorf("removed: %t, %v", begun, err)
	}
	if _, err := s.Of(inner).Meta().Read(); err != nil {
		t.Errorf("the other: %v", err)
	}
	must(t, s.Of(inner).Whole().Remove())
	for _, id := range []thread.ID{one, inner, "never-1"} {
		if n, err := s.Of(id).Whole().Size(); n != 0 || err != nil {
			t.Errorf("size of %s: %d, %v", id, n, err)
		}
		must(t, s.Of(id).Whole().Remove())
	}
	all, err := s.Walk(100, func(f records.Found) error { return fmt.Errorf("%s is left", f.ID) })
	if err != nil || !all {
		t.Errorf("%t, %v", all, err)
	}
}

// gone: the document of the deleted is replaced whole, and nobody reads it without the seal.
func gone(t *testing.T, s Subject) {
	var got map[string]int
	if err := s.Gone().Read(&got); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before there is one: %v", err)
	}
	prepared(t, s, one) // somebody was there
	for n := range 2 {
		must(t, s.Gone().Write(map[string]int{"n": n}))
		if err := s.Gone().Read(&got); err != nil || got["n"] != n {
			t.Errorf("read %v, %v", got, err)
		}
	}
	if err := s.Blind.Gone().Read(&got); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a seal: %v", err)
	}
	if err := s.Blind.Gone().Write(got); err == nil {
		t.Error("written without a seal")
	}
}

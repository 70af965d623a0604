package sqlite

import (
	"testing"
)

// TestDescendantsOfACircle: a circle can only be made past this package.
func TestDescendantsOfACircle(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), Options{})
	a := running(t, s, "a", "")
	b := running(t, s, "b", a)
	if err := beside(t, s.registry, "UPDATE threads SET parent_id = ? WHERE thread_id = ?", b, a); err != nil {
		t.Fatal(err)
	}
	below, err := s.Descendants(t.Context(), a)
	if err != nil || len(below) != 1 || below[0].ThreadID != b {
		t.Errorf("below a: %+v, %v", below, err)
	}
	if marked, err := s.RequestCancel(t.Context(), a, "", testTime); err != nil || len(marked) != 2 {
		t.Errorf("marked: %+v, %v", marked, err)
	}
}

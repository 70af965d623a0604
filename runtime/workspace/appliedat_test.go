package workspace

import "testing"

// TestAppliedAtAgain: to ask again when a workspace was applied costs a look at its file, and no
// signature is verified for it, for boards ask for each row each second. A workspace that is
// gone was not.
func TestAppliedAtAgain(t *testing.T) {
	h := newHouse(t)
	h.base(map[string]string{"a.txt": "one\n"})
	w, work := h.enter("")
	puts(t, work.Root, map[string]string{"a.txt": "two\n"})
	h.apply(w, ApplyRequest{})
	if h.AppliedAt(w).IsZero() {
		t.Fatal("it is not known")
	}
	if n := testing.AllocsPerRun(10, func() { h.AppliedAt(w) }); n > 20 {
		t.Errorf("%g allocations for each look", n)
	}
	s, err := h.of(w)
	if err != nil {
		t.Fatal(err)
	}
	if err := removeAll(s.dir); err != nil {
		t.Fatal(err)
	}
	if at := h.AppliedAt(w); !at.IsZero() {
		t.Errorf("what is gone was applied at %s", at)
	}
}

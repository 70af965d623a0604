package sqlite

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store"
)

// TestTrimLogs: a log that has grown long is short again while the store is open, and
// nothing of what was written is lost.
func TestTrimLogs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, unpolled)
	other := open(t, dir, unpolled) // so that nobody is the last
	log := filepath.Join(dir, registryFile+"-wal")
	size := func() int64 {
		info, err := os.Stat(log)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	n := 0
	for ; size() <= mostLog; n++ {
		if _, _, err := store.Register(t.Context(), s, newThread("work", ""), claimNothing); err != nil {
			t.Fatal(err)
		}
	}
	before := size()
	freed, err := s.Mend().TrimLogs(t.Context())
	if err != nil || freed < mostLog || size() > before-freed {
		t.Errorf("%d bytes freed of %d, %v; it has %d", freed, before, err, size())
	}
	if freed, err := s.Mend().TrimLogs(t.Context()); err != nil || freed != 0 {
		t.Errorf("again %d, %v", freed, err)
	}
	if st, err := other.Stats(t.Context(), store.StatsSince{Used: testTime, Created: testTime}); err != nil || st.Threads != n {
		t.Errorf("%d of %d threads, %v", st.Threads, n, err)
	}
}

// TestDropAside keeps the newest of what was set aside, and what is nobody's of these.
func TestDropAside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, unpolled)
	stamps := []string{"20260101T000000Z", "20260102T000000Z", "20260103T000000Z", "20260104T000000Z"}
	for _, stamp := range stamps {
		for _, ending := range []string{"", "-wal", "-shm"} {
			if err := os.WriteFile(filepath.Join(dir, registryFile+asideMark+stamp+ending), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "mine"+asideMark+"x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dropped, err := s.Mend().DropAside(t.Context(), 3)
	if err != nil || !slices.Equal(dropped, []string{registryFile + asideMark + stamps[0]}) {
		t.Errorf("dropped %q, %v", dropped, err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"+asideMark+"*"))
	if err != nil || len(left) != 3*3+1 {
		t.Errorf("left are %q, %v", left, err)
	}
	if dropped, err := s.Mend().DropAside(t.Context(), 3); err != nil || len(dropped) != 0 {
		t.Errorf("again %q, %v", dropped, err)
	}
}

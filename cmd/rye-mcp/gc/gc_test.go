package gc

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/spawn"
)

func TestIsThread(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want bool
	}{
		{append([]string{"rye-mcp"}, spawn.Args("/project", "id")...), true},
		{[]string{"rye-mcp", "thread", "run", "--help"}, false},
		{[]string{"rye-mcp", "threads", "list", "--json"}, false},
		{[]string{"rye-mcp"}, false},
		{nil, false},
	} {
		if got := isThread(test.args); got != test.want {
			t.Errorf("%v: %v", test.args, got)
		}
	}
}

func TestSettle(t *testing.T) { //nolint:paralleltest // the percentage is the process's
	before := debug.SetGCPercent(400)
	defer debug.SetGCPercent(before)
	k := newKeeper(firstPercent)
	k.settle()
	if got := debug.SetGCPercent(settledPercent); got != settledPercent {
		t.Errorf("a settled thread collects at %d", got)
	}
	if most := k.most.Load(); most != settledPercent {
		t.Errorf("later it collects at up to %d", most)
	}
}

// TestSettleCollectsOnce: a thread that has collected is not made to do so again.
func TestSettleCollectsOnce(t *testing.T) { //nolint:paralleltest // collections are the process's
	before := debug.SetGCPercent(-1)
	defer debug.SetGCPercent(before)
	k := newKeeper(firstPercent)
	for _, collects := range []bool{true, false} {
		k.collected.Store(!collects)
		had := collections()
		k.settle()
		debug.SetGCPercent(-1)
		if got := collections() > had; got != collects {
			t.Errorf("after a collection: %t; collects: %t", !collects, got)
		}
	}
}

func collections() uint32 {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return memory.NumGC
}

// TestPercentFor: a small heap is left alone until it has 12 MB, and a large one grows
// by half.
func TestPercentFor(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		live, most, want int64
	}{
		{0, firstPercent, firstPercent}, {2 << 20, firstPercent, firstPercent}, {4 << 20, firstPercent, 200}, {6 << 20, firstPercent, 100},
		{8 << 20, firstPercent, leastPercent}, {100 << 20, firstPercent, leastPercent},
		{1 << 20, settledPercent, settledPercent}, {100 << 20, settledPercent, leastPercent},
	} {
		if got := percentFor(test.live, test.most); got != test.want {
			t.Errorf("%d bytes, at most %d %%: %d", test.live, test.most, got)
		}
	}
}

// TestAfterCollection: a value that is set after one collection is set after the next one too.
func TestAfterCollection(t *testing.T) { //nolint:paralleltest // the percentage is the process's
	before := debug.SetGCPercent(400)
	defer debug.SetGCPercent(before)
	k := newKeeper(77)
	k.watch()
	for range 2 {
		for debug.SetGCPercent(400) != 77 {
			runtime.GC()
		}
	}
}

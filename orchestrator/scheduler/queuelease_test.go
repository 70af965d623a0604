package scheduler

import (
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/life"
)

// TestQueueLease: of two that wait one moves the queue each time, and the other now
// and then, until it inherits the right.
func TestQueueLease(t *testing.T) {
	t.Parallel()
	lives := &life.Local{Home: folder.Home{Dir: t.TempDir()}.Always()}
	keeper, other := &Lease{life: lives}, &Lease{life: lives}
	const times = 18 // the other leaves it five times in a row
	kept, helped := 0, 0
	for range times {
		if keeper.Turn() && keeper.Held() {
			kept++
		}
		if other.Turn() && !other.Held() {
			helped++
		}
	}
	if kept != times || helped != 3 {
		t.Errorf("of %d times one moved the queue %d times and the other %d times", times, kept, helped)
	}
	keeper.Release()
	if !other.Turn() || !other.Held() {
		t.Error("the right was not inherited")
	}
	other.Release()
}

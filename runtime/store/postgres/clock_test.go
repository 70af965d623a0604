package postgres

import (
	"testing"
	"time"
)

// TestServerClock: the time is the server's from its first answer on, whatever this machine's
// clock says, and does not jump with those that come later.
func TestServerClock(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	near := func(got, want time.Time) bool { return got.Sub(want).Abs() < time.Hour }
	for _, off := range []time.Duration{0, 1000 * day, -1000 * day} {
		var c serverClock
		if now := c.now(); !near(now, time.Now()) {
			t.Errorf("nothing was heard, and it is %s", now)
		}
		there := time.Now().Add(off)
		c.set(there.UnixMilli())
		c.set(there.Add(day).UnixMilli())
		if now := c.now(); !near(now, there) {
			t.Errorf("the server said %s, and it is %s", there, now)
		}
	}
}

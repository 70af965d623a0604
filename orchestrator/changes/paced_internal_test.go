package changes

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Looks are an interval apart, the first comes at once, the last wake-up is always
// followed by one, and one that failed is made again without any wake-up.
func TestPaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		commits, exits := make(chan struct{}, 1), make(chan struct{}, 1)
		began := time.Now()
		var looks []time.Duration
		var deaths int
		fail := false
		go paced(ctx, commits, exits, time.Second, func(died bool) bool {
			looks = append(looks, time.Since(began))
			if died {
				deaths++
			}
			failed := fail
			fail = false
			return !failed
		})
		expect := func(want ...time.Duration) {
			t.Helper()
			synctest.Wait()
			if len(looks) != len(want) {
				t.Fatalf("looked at %v, want %v", looks, want)
			}
			for i, at := range want {
				if looks[i] != at {
					t.Fatalf("looked at %v, want %v", looks, want)
				}
			}
		}
		expect()
		time.Sleep(5 * time.Second)
		expect()
		commits <- struct{}{}
		expect(5 * time.Second)
		for range 20 { // two seconds of commits
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			select {
			case commits <- struct{}{}:
			default:
			}
		}
		time.Sleep(10 * time.Second)
		expect(5*time.Second, 6*time.Second, 7*time.Second, 8*time.Second)
		exits <- struct{}{}
		expect(5*time.Second, 6*time.Second, 7*time.Second, 8*time.Second, 17*time.Second)
		if deaths != 1 {
			t.Errorf("%d looks know of a death, want 1", deaths)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		fail = true
		commits <- struct{}{}
		time.Sleep(time.Minute)
		expect(5*time.Second, 6*time.Second, 7*time.Second, 8*time.Second, 17*time.Second, 77*time.Second, 78*time.Second)
		cancel()
		synctest.Wait()
	})
}

package thread_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

func failed(code string, passing bool) thread.Outcome {
	return thread.Outcome{State: thread.Error, Error: &thread.Problem{Code: code, Passing: passing}}
}

func TestRetryOf(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	policy := thread.RetryPolicy{
		Attempts: 3, Backoff: thread.BackoffFixed, BaseSeconds: 60, On: []string{thread.RetryProvider, thread.RetryCrash},
	}
	limits := thread.Limits{Spend: 100}
	for _, tt := range []struct {
		name    string
		outcome thread.Outcome
		attempt int
		spend   thread.Micros
		want    int
	}{
		{"the model was away", failed("provider_transient", true), 0, 0, 2},
		{"the process died", failed(thread.CodeDied, false), 2, 99, 3},
		{"the store was away", failed(thread.CodeStoreAway, false), 2, 99, 3},
		{"as often as may be", failed(thread.CodeDied, false), 3, 0, 0},
		{"all money is spent", failed(thread.CodeDied, false), 0, 100, 0},
		{"the provider refuses the key", failed("provider_permanent", false), 0, 0, 0},
		{"a limit", failed("turns_exceeded", false), 0, 0, 0},
		{"what nobody asked for", failed(thread.CodeReturned, false), 0, 0, 0},
		{"cancelled", thread.Outcome{State: thread.Cancelled, Error: &thread.Problem{Code: thread.CodeDied}}, 0, 0, 0},
		{"an error without words", thread.Outcome{State: thread.Error}, 0, 0, 0},
		{"completed", thread.Outcome{State: thread.Completed}, 0, 0, 0},
	} {
		m := thread.Meta{ThreadID: "d-1", Retry: &policy, Attempt: tt.attempt, Limits: limits}
		got := m.RetryOf(tt.outcome, thread.Cost{Spend: tt.spend}, at)
		if (got != nil) != (tt.want > 0) || got != nil && (got.Attempt != tt.want || got.Attempts != 3 || !got.At.Equal(at.Add(time.Minute))) {
			t.Errorf("%s: %+v, want attempt %d", tt.name, got, tt.want)
		}
	}
	if got := (thread.Meta{Limits: limits}).RetryOf(failed(thread.CodeDied, false), thread.Cost{}, at); got != nil {
		t.Errorf("without <retry>: %+v", got)
	}
}

// TestRetryWaits: whatever a thread.json says, an attempt has a number that is bounded, and a
// wait that is bounded, grows and is the same whoever works it out.
func TestRetryWaits(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	rapid.Check(t, func(r *rapid.T) {
		p := thread.RetryPolicy{
			Attempts: rapid.Int().Draw(r, "attempts"), Backoff: rapid.SampledFrom(thread.Backoffs()).Draw(r, "backoff"),
			BaseSeconds: rapid.Float64().Draw(r, "base"), MaxSeconds: rapid.Float64().Draw(r, "max"), On: []string{thread.RetryCrash},
		}
		if rapid.Bool().Draw(r, "nan") {
			p.BaseSeconds = math.NaN()
		}
		last, wait := 0, time.Duration(0)
		for attempt := range 30 {
			m := thread.Meta{ThreadID: "d-1", Retry: &p, Attempt: attempt, Limits: thread.Limits{Spend: 1}}
			got := m.RetryOf(failed(thread.CodeDied, false), thread.Cost{}, at)
			if got == nil {
				continue
			}
			last = got.Attempt
			now := got.At.Sub(at)
			if now < 0 || now > thread.MaxRetryGap || now < wait-time.Millisecond && p.BaseSeconds > 0 && p.MaxSeconds >= 2*p.BaseSeconds {
				r.Fatalf("attempt %d after %v, the one before after %v", attempt, now, wait)
			}
			if again := m.RetryOf(failed(thread.CodeDied, false), thread.Cost{}, at); *again != *got {
				r.Fatalf("%v, and then %v", got, again)
			}
			wait = now
		}
		if last > thread.MaxAttempts {
			r.Fatalf("%d attempts", last)
		}
	})
}

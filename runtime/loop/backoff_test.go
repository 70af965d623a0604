package loop

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/config"
)

func asksFor(d time.Duration) func(string) time.Duration {
	return func(string) time.Duration { return d }
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	exponential := config.RetryPolicy{Type: config.PolicyExponential, Base: 2, Max: 10}
	fixed := config.RetryPolicy{Type: config.PolicyFixed, Delay: 7}
	header := config.RetryPolicy{Type: config.PolicyUseHeader, Header: "retry-after", Fallback: &fixed}
	for name, c := range map[string]struct {
		policy  config.RetryPolicy
		attempt int
		asked   time.Duration
		draw    float64
		want    time.Duration
		never   bool
	}{
		"first":                     {policy: exponential, want: time.Second},
		"first, drawn long":         {policy: exponential, draw: 0.5, want: 1500 * time.Millisecond},
		"second":                    {policy: exponential, attempt: 1, want: 2 * time.Second},
		"third":                     {policy: exponential, attempt: 2, want: 4 * time.Second},
		"at most max":               {policy: exponential, attempt: 3, want: 5 * time.Second},
		"far beyond":                {policy: exponential, attempt: 5000, want: 5 * time.Second},
		"no base":                   {policy: config.RetryPolicy{Type: config.PolicyExponential, Max: 9}, attempt: 9000},
		"what is asked is not used": {policy: exponential, asked: time.Hour, want: time.Second},
		"fixed":                     {policy: fixed, attempt: 4, draw: 0.9, want: 7 * time.Second},
		"header":                    {policy: header, asked: time.Hour, want: time.Hour},
		"header, spread":            {policy: header, asked: time.Minute, draw: 0.5, want: 63 * time.Second},
		"header that is not there":  {policy: header, want: 7 * time.Second},
		"header with no fallback":   {policy: config.RetryPolicy{Type: config.PolicyUseHeader}, never: true},
		"none":                      {policy: config.RetryPolicy{Type: config.PolicyNone}, never: true},
	} {
		got, ok := backoff(c.policy, c.attempt, asksFor(c.asked), c.draw)
		if got != c.want || ok == c.never {
			t.Errorf("%s: %s, %v; want %s", name, got, ok, c.want)
		}
	}
}

// TestBackoffProperties: no wait is shorter or longer than its policy allows, and
// an exponential one never shrinks before it has reached its maximum, whatever is
// drawn.
func TestBackoffProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.Float64Range(0, 0.999999)
		p := config.RetryPolicy{
			Type: config.PolicyExponential, Base: rapid.Float64Range(0, 1e9).Draw(t, "base"), Max: rapid.Float64Range(0, 1e9).Draw(t, "max"),
		}
		most, last := seconds(p.Max), time.Duration(0)
		for attempt := range 40 {
			wait, ok := backoff(p, attempt, asksFor(0), draw.Draw(t, "draw"))
			if !ok || wait < 0 || wait > most || wait < min(seconds(p.Base), most)/2 {
				t.Fatalf("attempt %d of %+v: %s", attempt, p, wait)
			}
			if wait < last && last < most/2 {
				t.Fatalf("attempt %d of %+v: %s after %s", attempt, p, wait, last)
			}
			last = wait
		}
		asked := time.Duration(rapid.Int64Range(1, int64(30*24*time.Hour)).Draw(t, "asked"))
		wait, _ := backoff(config.RetryPolicy{Type: config.PolicyUseHeader}, 0, asksFor(asked), draw.Draw(t, "spread"))
		if wait < asked || wait > asked+asked/10 {
			t.Fatalf("asked for %s: %s", asked, wait)
		}
	})
}

// TestPolicyOf: resilience.yaml says what a rule leaves open.
func TestPolicyOf(t *testing.T) {
	t.Parallel()
	general := config.Retry{BaseSeconds: 3, MaxSeconds: 4}
	fixed := config.RetryPolicy{Type: config.PolicyFixed, Delay: 7}
	if p := policyOf(config.ErrorClass{}, general); p.Type != config.PolicyExponential || p.Base != 3 || p.Max != 4 {
		t.Errorf("no policy: %+v", p)
	}
	if p := policyOf(config.ErrorClass{Policy: &fixed}, general); p != fixed {
		t.Errorf("own policy: %+v", p)
	}
	header := config.RetryPolicy{Type: config.PolicyUseHeader, Fallback: &config.RetryPolicy{Type: config.PolicyUseHeader, Header: "x"}}
	p := policyOf(config.ErrorClass{Policy: &header}, general)
	if inner := p.Fallback.Fallback; inner == nil || inner.Base != 3 || header.Fallback.Fallback != nil {
		t.Errorf("header: %+v", p)
	}
}

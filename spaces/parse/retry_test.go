package parse_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
)

func retryOf(attrs string) (*thread.RetryPolicy, error) {
	doc, err := parse.Directive("d.md", []byte("```xml\n<directive name=\"d\">\n<metadata>\n<retry "+attrs+"/>\n</metadata>\n</directive>\n```\n\nDo it.\n"))
	if err != nil {
		return nil, err
	}
	return doc.Retry, nil
}

func TestRetry(t *testing.T) {
	t.Parallel()
	both := []string{thread.RetryProvider, thread.RetryCrash}
	for attrs, want := range map[string]thread.RetryPolicy{
		`attempts="3"`: {Attempts: 3, Backoff: thread.BackoffExponential, BaseSeconds: 30, MaxSeconds: 3600, On: both},
		`attempts="2" backoff="exponential" base="0.5" max="8"`: {Attempts: 2, Backoff: thread.BackoffExponential, BaseSeconds: 0.5, MaxSeconds: 8, On: both},
		`attempts="2" base="7200"`:                              {Attempts: 2, Backoff: thread.BackoffExponential, BaseSeconds: 7200, MaxSeconds: 7200, On: both},
		`attempts=" 20 " backoff="fixed"`:                       {Attempts: 20, Backoff: thread.BackoffFixed, BaseSeconds: 60, On: both},
		`attempts="1" backoff="fixed" delay="86400" on="crash"`: {Attempts: 1, Backoff: thread.BackoffFixed, BaseSeconds: 86400, On: []string{thread.RetryCrash}},
		`attempts="2" on="returned, provider returned"`: {
			Attempts: 2, Backoff: thread.BackoffExponential, BaseSeconds: 30, MaxSeconds: 3600, On: []string{thread.RetryReturned, thread.RetryProvider},
		},
	} {
		got, err := retryOf(attrs)
		if err != nil || got == nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("<retry %s/>: %+v, %v; want %+v", attrs, got, err, want)
		}
	}
}

// TestAttackRetryBounds: a directive asks for a thousand million attempts, or for one without an end of waiting or
// none at all. It is refused with the line and what is valid.
func TestAttackRetryBounds(t *testing.T) {
	t.Parallel()
	for attrs, want := range map[string]string{
		``:                                       "whole number from 1 to 20",
		`attempts="1e9"`:                         "whole number from 1 to 20",
		`attempts="1000000000"`:                  "whole number from 1 to 20",
		`attempts="21"`:                          "whole number from 1 to 20",
		`attempts="0"`:                           "whole number from 1 to 20",
		`attempts="-1"`:                          "whole number from 1 to 20",
		`attempts="2" attempts="20"`:             "attempts",
		`attempts="2" backoff="30s"`:             `backoff="fixed" delay="60"`,
		`attempts="2" backoff="none"`:            "valid are exponential, fixed",
		`attempts="2" base="-1"`:                 "more than 0 and at most 86400",
		`attempts="2" base="0"`:                  "more than 0 and at most 86400",
		`attempts="2" base="NaN"`:                "more than 0 and at most 86400",
		`attempts="2" max="Inf"`:                 "more than 0 and at most 86400",
		`attempts="2" base="1e300"`:              "more than 0 and at most 86400",
		`attempts="2" base="9" max="3"`:          "less than base",
		`attempts="2" delay="3"`:                 "has no delay",
		`attempts="2" backoff="fixed" max="3"`:   "has no max",
		`attempts="2" on=""`:                     "valid are provider, crash, returned",
		`attempts="2" on="budget"`:               "valid are provider, crash, returned",
		`attempts="2" max_attempts="3"`:          "valid are attempts, backoff",
		`attempts="2" a:backoff="fixed"`:         "knows no attribute",
		`attempts="2"><p>more</p></retry><retry`: "holds nothing",
	} {
		got, err := retryOf(attrs)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "d.md:4") {
			t.Errorf("<retry %s/>: %+v, %v; want %q", attrs, got, err, want)
		}
	}
}

func FuzzRetry(f *testing.F) {
	f.Add("3", "exponential", "1", "2", "", "crash")
	f.Add("3", "fixed", "", "", "1e9", "provider")
	f.Fuzz(func(t *testing.T, attempts, backoff, base, most, delay, on string) {
		attrs := ""
		for _, a := range [][2]string{{"attempts", attempts}, {"backoff", backoff}, {"base", base}, {"max", most}, {"delay", delay}, {"on", on}} {
			if a[1] != "" {
				attrs += a[0] + `="` + strings.NewReplacer(`"`, "", "<", "", "&", "").Replace(a[1]) + `" `
			}
		}
		p, err := retryOf(attrs)
		if err != nil || p == nil {
			return
		}
		most24 := thread.MaxRetryGap.Seconds()
		if p.Attempts < 1 || p.Attempts > thread.MaxAttempts || !(p.BaseSeconds > 0 && p.BaseSeconds <= most24) || math.IsNaN(p.MaxSeconds) ||
			p.MaxSeconds > most24 || len(p.On) == 0 {
			t.Errorf("<retry %s/>: %+v", attrs, p)
		}
	})
}

package loop

import (
	"math"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// headerSpread is the part of a wait that a provider asks for by which it is
// lengthened at most, so that threads told the same do not come back together.
const headerSpread = 0.1

// maxDoublings keeps powers of two finite.
const maxDoublings = 64

// backoff is the time to wait after a failed call; false: there is to be no
// other. attempt counts the failures before this one, asked reads a header of the
// answer, and draw, at least 0 and less than 1, is what chance adds.
//
// An exponential wait lies between half of min(base * 2^attempt, max) and all of
// it. So it grows with every attempt until max is reached, whatever is drawn.
func backoff(p config.RetryPolicy, attempt int, asked func(header string) time.Duration, draw float64) (time.Duration, bool) {
	switch p.Type {
	case config.PolicyExponential:
		most := min(p.Base*math.Exp2(float64(min(attempt, maxDoublings))), p.Max)
		return seconds(most/2 + draw*most/2), true
	case config.PolicyFixed:
		return seconds(p.Delay), true
	case config.PolicyUseHeader:
		if wait := asked(p.Header); wait > 0 {
			return wait + time.Duration(draw*headerSpread*float64(wait)), true
		}
		if p.Fallback != nil {
			return backoff(*p.Fallback, attempt, asked, draw)
		}
	}
	return 0, false
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// policyOf is the policy of a rule, completed by the one of resilience.yaml
// where it has none.
func policyOf(rule config.ErrorClass, general config.Retry) config.RetryPolicy {
	other := config.RetryPolicy{Type: config.PolicyExponential, Base: general.BaseSeconds, Max: general.MaxSeconds}
	return completed(rule.Policy, other)
}

func completed(p *config.RetryPolicy, other config.RetryPolicy) config.RetryPolicy {
	if p == nil {
		return other
	}
	out := *p
	if out.Type == config.PolicyUseHeader {
		fallback := completed(out.Fallback, other)
		out.Fallback = &fallback
	}
	return out
}

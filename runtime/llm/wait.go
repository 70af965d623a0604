package llm

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RetryAfter is the header that says how long a provider wants to be left
// alone (RFC 9110 section 10.2.3).
const RetryAfter = "retry-after"

const (
	// maxAsked keeps absurd values inside the range of a duration.
	maxAsked = 30 * 24 * time.Hour
	// maxReset bounds what the headers about rate limits ask for: they say when
	// the whole limit is back, and a part of it is back sooner.
	maxReset = time.Minute
	// Larger numbers are no length of time but a point of it, in seconds or in
	// milliseconds of Unix time.
	epochSeconds, epochMillis = 1e9, 1e12
)

// Asked is how long the headers of an answer ask to wait, as the one of that
// name says it. For [RetryAfter] its exact variant retry-after-ms goes first,
// and where there is neither, the headers about an exhausted rate limit count. It is 0
// when nothing is asked for: no such header, one that cannot be read, a time
// that has passed. Points of time are measured against the Date of the answer,
// so that it does not matter whether this machine's clock is right, and
// against now when there is none.
func Asked(h http.Header, name string, now time.Time) time.Duration {
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	if !strings.EqualFold(name, RetryAfter) {
		return waitIn(h, name, now)
	}
	for _, header := range []string{"retry-after-ms", RetryAfter} {
		if wait := waitIn(h, header, now); wait > 0 {
			return wait
		}
	}
	return min(untilReset(h, now), maxReset)
}

// waitIn reads one header: a number of seconds, or of milliseconds when its name
// ends so; a length of time such as 6m0s; a date of HTTP or of RFC 3339; or a
// number so large that it is Unix time.
func waitIn(h http.Header, name string, now time.Time) time.Duration {
	value := strings.TrimSpace(h.Get(name))
	if n, err := strconv.ParseFloat(value, 64); err == nil {
		return span(n, strings.HasSuffix(strings.ToLower(name), "-ms"), now)
	}
	if d, err := time.ParseDuration(value); err == nil {
		return within(d)
	}
	if at, err := http.ParseTime(value); err == nil {
		return within(at.Sub(now))
	}
	if at, err := time.Parse(time.RFC3339, value); err == nil {
		return within(at.Sub(now))
	}
	return 0
}

func span(n float64, millis bool, now time.Time) time.Duration {
	unit := float64(time.Second)
	switch {
	case math.IsNaN(n):
		return 0
	case millis:
		unit = float64(time.Millisecond)
	case n >= epochMillis:
		n -= float64(now.UnixMilli())
		unit = float64(time.Millisecond)
	case n >= epochSeconds:
		n -= float64(now.Unix())
	}
	return time.Duration(min(max(n*unit, 0), float64(maxAsked)))
}

func within(d time.Duration) time.Duration { return min(max(d, 0), maxAsked) }

// limitHeaders are the headers about rate limits, in pairs: what is left, and
// when all of it is back. Sources: the pages "Rate limits" of Anthropic (dates of
// RFC 3339), OpenAI (lengths of time; Azure sends seconds) and OpenRouter (Unix
// time in milliseconds).
var limitHeaders = [][2]string{
	{"anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"},
	{"anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"},
	{"anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"},
	{"anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"},
	{"x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"},
	{"x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"},
	{"x-ratelimit-remaining", "x-ratelimit-reset"},
}

// untilReset is the time until the last of the exhausted limits is back. One of
// which it is not said what is left counts as exhausted: somebody refused.
func untilReset(h http.Header, now time.Time) time.Duration {
	var longest time.Duration
	for _, pair := range limitHeaders {
		left, err := strconv.ParseFloat(h.Get(pair[0]), 64)
		if err == nil && left > 0 {
			continue
		}
		longest = max(longest, waitIn(h, pair[1], now))
	}
	return longest
}

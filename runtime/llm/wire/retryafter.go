package wire

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter keeps absurd values inside the range of a duration.
const maxRetryAfter = 30 * 24 * time.Hour

// RetryAfter is how long a provider asks to be left alone: retry-after-ms
// (milliseconds, used by OpenAI and Anthropic), else Retry-After of RFC 9110
// section 10.2.3 in seconds or as a date. A date is measured against the Date
// of the answer, so that it does not matter whether this machine's clock is
// right. It is 0 when there is nothing to read.
func RetryAfter(h http.Header) time.Duration {
	if ms, ok := number(h.Get("Retry-After-Ms")); ok {
		return span(ms, time.Millisecond)
	}
	value := h.Get("Retry-After")
	if s, ok := number(value); ok {
		return span(s, time.Second)
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

func number(text string) (float64, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return n, err == nil && !math.IsNaN(n)
}

func span(n float64, unit time.Duration) time.Duration {
	if n <= 0 {
		return 0
	}
	return time.Duration(min(n*float64(unit), float64(maxRetryAfter)))
}

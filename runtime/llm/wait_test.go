package llm

import (
	"net/http"
	"testing"
	"time"
)

func TestAsked(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	const date = "Sat, 21 Nov 2026 09:00:00 GMT" // three hours off this machine's clock
	for name, c := range map[string]struct {
		header map[string]string
		from   string // "retry-after" when empty
		want   time.Duration
	}{
		"nothing":                   {nil, "", 0},
		"seconds":                   {map[string]string{"Retry-After": "7"}, "", 7 * time.Second},
		"parts of a second":         {map[string]string{"Retry-After": " 1.5 "}, "", 1500 * time.Millisecond},
		"milliseconds go first":     {map[string]string{"Retry-After": "7", "Retry-After-Ms": "250"}, "", 250 * time.Millisecond},
		"unreadable milliseconds":   {map[string]string{"Retry-After": "7", "Retry-After-Ms": "soon"}, "", 7 * time.Second},
		"negative":                  {map[string]string{"Retry-After": "-3"}, "", 0},
		"NaN":                       {map[string]string{"Retry-After": "NaN"}, "", 0},
		"more than a duration":      {map[string]string{"Retry-After": "9e8"}, "", maxAsked},
		"infinite":                  {map[string]string{"Retry-After": "Inf"}, "", maxAsked},
		"date":                      {map[string]string{"Retry-After": "Sat, 21 Nov 2026 12:01:30 GMT"}, "", 90 * time.Second},
		"date by the sender's own":  {map[string]string{"Retry-After": "Sat, 21 Nov 2026 09:01:30 GMT", "Date": date}, "", 90 * time.Second},
		"date that has passed":      {map[string]string{"Retry-After": "Sat, 21 Nov 2026 08:00:00 GMT", "Date": date}, "", 0},
		"date of obsolete form":     {map[string]string{"Retry-After": "Saturday, 21-Nov-26 12:01:30 GMT"}, "", 90 * time.Second},
		"words":                     {map[string]string{"Retry-After": "tomorrow", "Date": date}, "", 0},
		"Unix time":                 {map[string]string{"Retry-After": "1795262430"}, "", 30 * time.Second},
		"another header":            {map[string]string{"X-Wait": "2m30s"}, "x-wait", 150 * time.Second},
		"another in milliseconds":   {map[string]string{"X-Wait-Ms": "20"}, "X-Wait-Ms", 20 * time.Millisecond},
		"another is exact":          {map[string]string{"X-Ratelimit-Reset": "3600"}, "x-ratelimit-reset", time.Hour},
		"OpenAI's reset":            {map[string]string{"X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "12ms", "X-Ratelimit-Remaining-Tokens": "5", "X-Ratelimit-Reset-Tokens": "40s"}, "", 12 * time.Millisecond},
		"Azure's reset":             {map[string]string{"X-Ratelimit-Reset-Tokens": "55"}, "", 55 * time.Second},
		"Azure's numbers gone mad":  {map[string]string{"X-Ratelimit-Remaining-Tokens": "-1", "X-Ratelimit-Reset-Tokens": "0"}, "", 0},
		"Anthropic's reset":         {map[string]string{"Anthropic-Ratelimit-Tokens-Remaining": "0", "Anthropic-Ratelimit-Tokens-Reset": "2026-11-21T12:00:20Z"}, "", 20 * time.Second},
		"OpenRouter's reset":        {map[string]string{"X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "1795262410000"}, "", 10 * time.Second},
		"the later of two":          {map[string]string{"Anthropic-Ratelimit-Tokens-Reset": "2026-11-21T12:00:20Z", "Anthropic-Ratelimit-Requests-Reset": "2026-11-21T12:00:30Z"}, "", 30 * time.Second},
		"reset of a day":            {map[string]string{"X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "8h0m0s"}, "", maxReset},
		"reset beside retry-after":  {map[string]string{"X-Ratelimit-Reset-Tokens": "55", "Retry-After": "3"}, "", 3 * time.Second},
		"limits that are not empty": {map[string]string{"X-Ratelimit-Remaining-Tokens": "9", "X-Ratelimit-Reset-Tokens": "55"}, "", 0},
	} {
		h := http.Header{}
		for key, value := range c.header {
			h.Set(key, value)
		}
		if c.from == "" {
			c.from = "Retry-After"
		}
		if got := Asked(h, c.from, now); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func FuzzAsked(f *testing.F) {
	f.Add("12", "", "", "")
	f.Add("Sat, 21 Nov 2026 09:01:30 GMT", "1e9", "Sat, 21 Nov 2026 09:00:00 GMT", "6m0s")
	f.Add("-1e400", "0x1p-2", "", "2026-11-21T12:00:20Z")
	f.Fuzz(func(t *testing.T, after, ms, date, reset string) {
		h := http.Header{"Retry-After": {after}, "Retry-After-Ms": {ms}, "Date": {date}, "X-Ratelimit-Reset": {reset}}
		for _, name := range []string{RetryAfter, "retry-after-ms", "x-ratelimit-reset", ""} {
			if got := Asked(h, name, time.Unix(1_800_000_000, 0)); got < 0 || got > maxAsked {
				t.Errorf("%s: got %s", name, got)
			}
		}
	})
}

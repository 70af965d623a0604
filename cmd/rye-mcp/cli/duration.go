package cli

import (
	"errors"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
)

// duration is the value of a flag about time: an age as all other flags have it, such as 7d,
// or a duration of Go, such as 1.5s.
type duration time.Duration

// asDuration is the value of a flag that sets a duration, which begins as usual.
func asDuration(to *time.Duration, usual time.Duration) *duration {
	*to = usual
	return (*duration)(to)
}

// String is "0" for no time, which help does not show as a default.
func (d *duration) String() string {
	if *d == 0 {
		return "0"
	}
	return time.Duration(*d).String()
}

func (d *duration) Type() string { return "duration" }

func (d *duration) Set(text string) error {
	if age, err := tidy.ParseAge(text); err == nil {
		*d = duration(age)
		return nil
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("valid are numbers with w, d, h, m, s or ms, such as 90s, 10m or 1d12h")
	}
	*d = duration(parsed)
	return nil
}

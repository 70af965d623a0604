package mirror

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/regular"
)

// Rest is how long nobody is to try a server that could not be reached: a file with its
// seconds and, in the next line, the failure, whose time of change is when the rest ends.
type Rest struct{ File string }

// The shortest and the longest rest; each is twice as long as the one before.
const (
	shortestRest = 15 * time.Second
	longestRest  = 5 * time.Minute
)

// mostOfRest is how many bytes the file has at most.
const mostOfRest = 1 << 10

// Over reports whether the server may be tried. A clock that was set back ends a rest.
func (r Rest) Over(now time.Time) bool {
	info, err := os.Stat(r.File)
	return err != nil || !now.Before(info.ModTime()) || info.ModTime().Sub(now) > longestRest
}

// Longer begins a rest, after a failure.
func (r Rest) Longer(now time.Time, failure string) error {
	rest := shortestRest
	if last, _ := r.read(); last > 0 {
		rest = min(max(2*last, shortestRest), longestRest)
	}
	if err := os.WriteFile(r.File, fmt.Appendf(nil, "%d\n%s\n", int(rest.Seconds()), failure), 0o600); err != nil {
		return err
	}
	return os.Chtimes(r.File, now, now.Add(rest))
}

// read is how long the last rest is, and the failure before it; 0: there is none.
func (r Rest) read() (rest time.Duration, failure string) {
	text, err := regular.Read(r.File, mostOfRest)
	if err != nil {
		return 0, ""
	}
	first, failure, _ := strings.Cut(string(text), "\n")
	seconds, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || seconds <= 0 {
		return 0, ""
	}
	return time.Duration(min(seconds, 3600)) * time.Second, strings.TrimSpace(failure)
}

// Failed is what the last attempt met, and when; empty: it met nothing.
func (r Rest) Failed() (failure string, at time.Time) {
	rest, failure := r.read()
	info, err := os.Stat(r.File)
	if err != nil || failure == "" {
		return "", time.Time{}
	}
	return failure, info.ModTime().Add(-rest)
}

// End says that the server can be reached.
func (r Rest) End() { _ = os.Remove(r.File) }

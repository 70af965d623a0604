package mirror

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// Rest is how long nobody is to try a server that could not be reached: a file whose time
// of change is when the rest ends.
type Rest struct{ File string }

// The shortest and the longest rest; each is twice as long as the one before.
const (
	shortestRest = 15 * time.Second
	longestRest  = 5 * time.Minute
)

// Over reports whether the server may be tried. A clock that was set back ends a rest.
func (r Rest) Over(now time.Time) bool {
	info, err := os.Stat(r.File)
	return err != nil || !now.Before(info.ModTime()) || info.ModTime().Sub(now) > longestRest
}

// Longer begins a rest.
func (r Rest) Longer(now time.Time) error {
	rest := shortestRest
	if text, err := os.ReadFile(r.File); err == nil {
		if seconds, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && seconds > 0 {
			rest = min(max(2*time.Duration(min(seconds, 3600))*time.Second, shortestRest), longestRest)
		}
	}
	if err := os.WriteFile(r.File, []byte(strconv.Itoa(int(rest.Seconds()))), 0o600); err != nil {
		return err
	}
	return os.Chtimes(r.File, now, now.Add(rest))
}

// End says that the server can be reached.
func (r Rest) End() { _ = os.Remove(r.File) }

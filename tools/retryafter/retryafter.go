// Package retryafter reads the header Retry-After: how long a server wants to be left
// alone.
package retryafter

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Longest is the most that is read; who asks for more is given this.
const Longest = 24 * time.Hour

// Wait is how long a header asks to wait from now on, in seconds or until a date. It is
// not asked where the header is empty or neither, and where the time has passed.
func Wait(header string, now time.Time) (wait time.Duration, asked bool) {
	header = strings.TrimSpace(header)
	seconds, err := strconv.Atoi(header)
	if err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(max(seconds, 0), int(Longest/time.Second))) * time.Second, seconds >= 0
	}
	at, err := http.ParseTime(header)
	if err != nil || !at.After(now) {
		return 0, false
	}
	return min(at.Sub(now), Longest), true
}

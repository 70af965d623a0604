package tidy

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// units of an age, longest first.
var units = []struct {
	name string
	of   time.Duration
}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}}

// maxAge bounds an age: some hundred years.
const maxAge = 100 * 366 * 24 * time.Hour

// ParseAge reads how old something has to be, such as 30d, 12h, 1d12h or 0s. A number
// alone says nothing.
func ParseAge(text string) (time.Duration, error) {
	var age time.Duration
	rest := strings.ToLower(strings.TrimSpace(text))
	if rest == "" {
		return 0, badAge(text)
	}
	for rest != "" {
		digits := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
		if digits <= 0 {
			return 0, badAge(text)
		}
		n, err := strconv.ParseInt(rest[:digits], 10, 32)
		unit := unitOf(rest[digits : digits+1])
		if err != nil || unit == 0 || n > math.MaxInt64/int64(unit) {
			return 0, badAge(text)
		}
		if age += time.Duration(n) * unit; age > maxAge || age < 0 {
			return 0, badAge(text)
		}
		rest = rest[digits+1:]
	}
	return age, nil
}

func unitOf(name string) time.Duration {
	for _, u := range units {
		if u.name == name {
			return u.of
		}
	}
	return 0
}

func badAge(text string) error {
	return fmt.Errorf("%.40q is no age; valid are numbers with w, d, h, m or s, such as 30d, 12h, 1d12h or 0s, at most 100 years", text)
}

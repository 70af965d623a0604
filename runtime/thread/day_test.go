package thread

import (
	"testing"
	"time"
	_ "time/tzdata"
)

// TestStartOfDay: a day begins once, also where clocks change at midnight or a day is left out.
func TestStartOfDay(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		zone string
		day  [3]int
		want string
	}{
		{"UTC", [3]int{2026, 2, 29}, "2026-03-01T00:00:00Z"},
		{"Europe/Berlin", [3]int{2026, 3, 29}, "2026-03-29T00:00:00+01:00"},
		{"Europe/Berlin", [3]int{2026, 3, 30}, "2026-03-30T00:00:00+02:00"},
		{"America/Santiago", [3]int{2026, 9, 5}, "2026-09-05T00:00:00-04:00"},
		{"America/Santiago", [3]int{2026, 9, 6}, "2026-09-06T01:00:00-03:00"}, // 24:00 is 01:00
		{"America/Santiago", [3]int{2026, 8, 37}, "2026-09-06T01:00:00-03:00"},
		{"America/Santiago", [3]int{2026, 4, 5}, "2026-04-05T00:00:00-04:00"}, // 24:00 is 23:00
		{"America/Havana", [3]int{2026, 11, 1}, "2026-11-01T00:00:00-04:00"},  // 01:00 is 00:00
		{"America/Havana", [3]int{2026, 3, 8}, "2026-03-08T01:00:00-04:00"},   // 00:00 is 01:00
		{"Asia/Beirut", [3]int{2026, 3, 29}, "2026-03-29T01:00:00+03:00"},     // east of UTC
		{"Pacific/Apia", [3]int{2011, 12, 30}, "2011-12-31T00:00:00+14:00"},   // there was no such day
	} {
		zone, err := time.LoadLocation(test.zone)
		if err != nil {
			t.Fatal(err)
		}
		got := StartOfDay(test.day[0], time.Month(test.day[1]), test.day[2], zone)
		if got.In(zone).Format(time.RFC3339) != test.want {
			t.Errorf("%s %v begins at %s, want %s", test.zone, test.day, got.In(zone).Format(time.RFC3339), test.want)
		}
	}
}

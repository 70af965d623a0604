package thread

import "time"

// StartOfDay is when a day begins in a zone, whose numbers may lie outside of their month. Where
// clocks go forward over midnight it is the moment in which they do; where they go back to
// midnight it is the first of the two.
func StartOfDay(year int, month time.Month, day int, zone *time.Location) time.Time {
	year, month, day = time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Date()
	at := time.Date(year, month, day, 0, 0, 0, 0, zone)
	begin, end := at.ZoneBounds()
	if at.Day() != day { // there is no midnight, and this is an hour before it; or there is no such day
		if left := end.Sub(at); !end.IsZero() && left <= 24*time.Hour {
			return end
		}
		return at
	}
	if begin.IsZero() {
		return at
	}
	if hour, minute, second := at.Clock(); hour+minute+second > 0 { // there is none, and this is an hour behind it
		return begin
	}
	_, after := at.Zone()
	_, before := begin.Add(-time.Second).Zone()
	if first := at.Add(time.Duration(after-before) * time.Second); first.Before(begin) && first.Day() == day {
		return first
	}
	return at
}

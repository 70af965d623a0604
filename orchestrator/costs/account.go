package costs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// account is what is summed up for one answer.
type account struct {
	by           By
	since, until time.Time // since zero: from the beginning
	zone         *time.Location
	bucket       Bucket
	exact        bool
	sums         map[string]uses // by key
	unknown      thread.Micros   // spent by deleted threads that nobody can name
}

// uses are those of one key, by the beginning of the bucket in Unix seconds.
type uses map[int64]*Use

func (u uses) total() (sum Use) {
	for _, use := range u {
		sum.add(*use)
	}
	return sum
}

// defaultLength is how far back an answer goes that does not say.
const defaultLength = 30 * 24 * time.Hour

func newAccount(req Request, now time.Time) (*account, error) {
	a := &account{by: req.By, zone: req.Zone, exact: req.Exact, until: now, sums: map[string]uses{}}
	if a.zone == nil {
		a.zone = time.UTC
	}
	var err error
	if req.Until != "" {
		if a.until, err = parseTime("until", req.Until, now, a.zone); err != nil {
			return nil, err
		}
	}
	switch req.Since {
	case "all":
	case "":
		last := a.until
		if last.After(now) {
			last = now
		}
		a.since = last.Add(-defaultLength)
	default:
		if a.since, err = parseTime("since", req.Since, now, a.zone); err != nil {
			return nil, err
		}
	}
	if !a.since.Before(a.until) {
		return nil, tool.Faultf(tool.CodeBadArguments, "since %s is not before until %s",
			a.since.In(a.zone).Format(time.RFC3339), a.until.In(a.zone).Format(time.RFC3339))
	}
	return a, nil
}

// fittingBucket is what shows the time that is asked for in not too many numbers.
func (a *account) fittingBucket() Bucket {
	switch long := a.until.Sub(a.since); {
	case a.since.IsZero() || long > 180*24*time.Hour:
		return Weeks
	case long > 3*24*time.Hour:
		return Days
	}
	return Hours
}

// slot is a length of time of which no two buckets have a part: the clocks of some zones
// differ from UTC by a quarter of an hour.
func (a *account) slot() time.Duration {
	for _, at := range []time.Time{a.since, a.until} {
		if _, offset := at.In(a.zone).Zone(); offset%3600 != 0 {
			return 15 * time.Minute
		}
	}
	return time.Hour
}

// beginning is that of the bucket of a time.
func (a *account) beginning(at time.Time) time.Time {
	at = at.In(a.zone)
	year, month, day := at.Date()
	switch a.bucket {
	case Hours:
		return at.Add(-at.Sub(time.Unix(at.Unix(), 0)) - time.Duration(at.Minute()*60+at.Second())*time.Second)
	case Weeks:
		day -= (int(at.Weekday()) + 6) % 7
	case Days:
	}
	return thread.StartOfDay(year, month, day, a.zone)
}

// next is the beginning of the bucket behind one.
func (a *account) next(at time.Time) time.Time {
	year, month, day := at.Date()
	switch a.bucket {
	case Hours:
		return at.Add(time.Hour)
	case Weeks:
		day += 7
	case Days:
		day++
	}
	return thread.StartOfDay(year, month, day, a.zone)
}

// count adds what was used at a time under a key.
func (a *account) count(key string, at time.Time, u Use) {
	begin := a.beginning(at)
	if a.by == Day {
		key = at.In(a.zone).Format(time.DateOnly)
	}
	if a.sums[key] == nil {
		a.sums[key] = uses{}
	}
	use := a.sums[key][begin.Unix()]
	if use == nil {
		use = &Use{}
		a.sums[key][begin.Unix()] = use
	}
	use.add(u)
}

// sum adds what the store has summed up.
func (a *account) sum(s store.CostSum) {
	key, at := s.Key, s.Slot
	if at.IsZero() { // not over time
		at = a.until
	}
	switch {
	case s.Unknown && a.by != All:
		key = Deleted
	case key == "" && a.by == Model:
		key = NoModel
	}
	u := Use{Threads: s.Threads, Errors: s.Errors, Cancelled: s.Cancelled, Cost: s.Cost}
	if s.Gone {
		u.Deleted = s.Threads
	}
	if s.Unknown {
		a.unknown = a.unknown.Plus(s.Cost.Spend)
	}
	a.count(key, at, u)
}

// keys are all, the dearest first.
func (a *account) keys() []string {
	spend := map[string]Use{}
	keys := make([]string, 0, len(a.sums))
	for key, u := range a.sums {
		keys, spend[key] = append(keys, key), u.total()
	}
	slices.SortFunc(keys, func(x, y string) int {
		return cmp.Or(cmp.Compare(spend[y].Spend, spend[x].Spend), cmp.Compare(spend[y].Threads, spend[x].Threads), strings.Compare(x, y))
	})
	return keys
}

func (a *account) total() (sum Use) {
	for _, u := range a.sums {
		sum.add(u.total())
	}
	return sum
}

// buckets are the beginnings of all in the time that is asked for; from the first in
// which there is anything where it has no beginning.
func (a *account) buckets() ([]time.Time, error) {
	first := a.since
	if first.IsZero() {
		first = a.until
		for _, u := range a.sums {
			for at := range u {
				first = time.Unix(min(first.Unix(), at), 0)
			}
		}
	}
	list := []time.Time{}
	for at := a.beginning(first); at.Before(a.until); at = a.next(at) {
		if len(list) == maxBuckets {
			return nil, tool.Faultf(tool.CodeBadArguments, "the time has more than %d buckets of a %s", maxBuckets, a.bucket).
				WithHint("choose a longer bucket, or a later since")
		}
		list = append(list, at)
	}
	return list, nil
}

// line is what some keys have used together in each bucket.
func (a *account) line(name string, at []time.Time, keys ...string) Line {
	n := len(at)
	l := Line{
		Key: name, Spend: make([]thread.Micros, n), Tokens: make([]int64, n), Turns: make([]int, n), Errors: make([]int, n), Threads: make([]int, n),
	}
	for i, begin := range at {
		for _, key := range keys {
			u := a.sums[key][begin.Unix()]
			if u == nil {
				continue
			}
			l.Spend[i] = l.Spend[i].Plus(u.Spend)
			l.Tokens[i] = thread.Sum(l.Tokens[i], u.Tokens())
			l.Turns[i] += u.Turns
			l.Errors[i] += u.Errors
			l.Threads[i] += u.Threads
		}
	}
	return l
}

// told is the time, and what the numbers are.
func (a *account) told() Range {
	r := Range{By: a.by, Until: a.until.UTC(), Exact: a.exact}
	if !a.since.IsZero() {
		since := a.since.UTC()
		r.Since = &since
	}
	sum := a.total()
	r.Covers = fmt.Sprintf("what %s used themselves, each counted at the time of its start and under the model it was started with", counted(sum.Threads, "thread"))
	if a.exact {
		r.Covers = fmt.Sprintf("what %s used themselves, each call of a model counted when it was made and under the model that was asked", counted(sum.Threads, "thread"))
	}
	if a.by == Model && !a.exact {
		r.Covers += ", whichever model answered: where a fallback did, exact counts the calls of each"
	}
	if sum.Deleted > 0 {
		r.Covers += "; " + deleted(sum.Deleted)
	}
	if a.unknown > 0 {
		r.Covers += fmt.Sprintf("; %s of deleted threads that nobody can name", a.unknown)
	}
	return r
}

// deleted tells where threads that are gone are counted.
func deleted(n int) string {
	if n == 1 {
		return "1 of them was deleted and counts on the day of its start"
	}
	return fmt.Sprintf("%d of them were deleted and count on the day of their start", n)
}

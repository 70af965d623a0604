package costs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/rs/zerolog"
	"github.com/rye-mcp/rye-mcp/orchestrator/costs"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// noon is on a Wednesday.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

type failer interface {
	Helper()
	Fatal(args ...any)
	Errorf(format string, args ...any)
}

// scene is a project of threads without processes.
type scene struct {
	failer
	ctx   context.Context //nolint:containedctx // of the test
	store storetest.Any
	costs *costs.Costs
	files records.Records
	now   time.Time
}

func newScene(ctx context.Context, f failer, dir string) (s *scene, closed func()) {
	f.Helper()
	s = &scene{failer: f, ctx: ctx, now: noon}
	state, err := placetest.Make(dir, filepath.Join(dir, "user"))
	s.noError(err)
	opened, err := sqlite.Open(ctx, state.Dir, sqlite.Options{Mark: state.Seal.Mark})
	s.noError(err)
	s.store = storetest.As(opened)
	s.files = records.Local{Home: folder.Home{Dir: state.Dir, Seal: state.Seal}.Always()}
	s.costs = &costs.Costs{Threads: threads.New(threads.Deps{
		Project: dir, Store: opened, Records: s.files, Now: func() time.Time { return s.now }, Log: zerolog.Nop(), Freed: func(context.Context) {},
	})}
	return s, func() { s.noError(opened.Close()) }
}

func openScene(t *testing.T) *scene {
	t.Helper()
	s, closed := newScene(t.Context(), t, t.TempDir())
	t.Cleanup(closed)
	return s
}

func (s *scene) noError(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// call is a call of a model, so long after the start of its thread.
type call struct {
	after time.Duration
	model string
	spend thread.Micros
}

// thread is one of a directive that was started so long before now, has made calls and
// ended.
func (s *scene) thread(directive string, ago time.Duration, as thread.State, calls ...call) thread.ID {
	s.Helper()
	began := s.now.Add(-ago)
	n := store.NewThread{Kind: thread.KindDirective, Directive: directive, Now: began, Run: thread.NewRun()}
	if len(calls) > 0 {
		n.Model = calls[0].model
	}
	rec, _, err := store.Register(s.ctx, s.store.Store, n, nil)
	s.noError(err)
	_, err = s.store.Apply(s.ctx, store.Claimed(rec.ThreadID, thread.Process{PID: 1 << 30, Host: "elsewhere"}, began))
	s.noError(err)
	of := s.files.Of(rec.ThreadID)
	s.noError(of.Prepare())
	at := began
	w, err := transcript.Open(of.Transcript(), rec.ThreadID, transcript.Options{Now: func() time.Time { return at }})
	s.noError(err)
	var sum thread.Cost
	for i, c := range calls {
		at = began.Add(c.after)
		sum = sum.Add(thread.Cost{Turns: 1, InputTokens: 10, Spend: c.spend})
		s.noError(w.Append(thread.EventCognitionRequest, transcript.CognitionRequest{Turn: i + 1, Model: c.model}))
		s.noError(w.Append(thread.EventCognitionOut, transcript.CognitionOut{Turn: i + 1, Spend: c.spend, Usage: llm.Usage{InputTokens: 10, Reported: true}}))
	}
	s.noError(w.Close())
	s.noError(s.store.RecordCost(s.ctx, rec.ThreadID, sum, 1))
	if as.Terminal() {
		change, err := store.Finished(rec.ThreadID, thread.Outcome{State: as}, nil, at)
		s.noError(err)
		_, err = s.store.Apply(s.ctx, change)
		s.noError(err)
	}
	return rec.ThreadID
}

func (s *scene) table(r costs.Request) string {
	s.Helper()
	t, err := s.costs.Table(s.ctx, r)
	s.noError(err)
	var b strings.Builder
	for _, row := range t.Rows {
		fmt.Fprintf(&b, "%s %d/%d/%d %d; ", row.Key, row.Threads, row.Errors, row.Turns, row.Spend)
	}
	fmt.Fprintf(&b, "all %d/%d/%d %d", t.Total.Threads, t.Total.Errors, t.Total.Turns, t.Total.Spend)
	return b.String()
}

func (s *scene) want(r costs.Request, want string) {
	s.Helper()
	if got := s.table(r); got != want {
		s.Errorf("%+v\n%s, want\n%s", r, got, want)
	}
}

const day = 24 * time.Hour

// TestTable holds that a thread of several days and models counts as it was started, or
// exactly, call by call; and that both come to the same sum.
func TestTable(t *testing.T) {
	t.Parallel()
	s := openScene(t)
	s.thread("a", time.Hour, thread.Completed, call{0, "p/m", 5}, call{time.Minute, "p/m", 7})
	s.thread("b", 2*day, thread.Error, call{0, "p/m", 100}, call{day, "p/n", 20}, call{2 * day, "p/n", 1}) // the last is not before now
	s.thread("b", 40*day, thread.Completed, call{0, "p/n", 1000})
	s.want(costs.Request{By: costs.Directive}, "b 1/1/3 121; a 1/0/2 12; all 2/1/5 133")
	s.want(costs.Request{By: costs.Directive, Since: "all"}, "b 2/1/4 1121; a 1/0/2 12; all 3/1/6 1133")
	s.want(costs.Request{By: costs.Model}, "p/m 2/1/5 133; all 2/1/5 133")
	s.want(costs.Request{By: costs.Model, Exact: true, Until: "2026-03-05"}, "p/m 2/0/3 112; p/n 0/1/2 21; all 2/1/5 133")
	s.want(costs.Request{By: costs.Day}, "2026-03-02 1/1/3 121; 2026-03-04 1/0/2 12; all 2/1/5 133")
	s.want(costs.Request{By: costs.Day, Exact: true, Until: "2026-03-05"}, "2026-03-02 1/0/1 100; 2026-03-03 0/0/1 20; 2026-03-04 1/1/3 13; all 2/1/5 133")
	s.want(costs.Request{By: costs.Day, Exact: true, Since: "1d"}, "2026-03-03 1/0/1 20; 2026-03-04 1/0/2 12; all 2/0/3 32")
	s.want(costs.Request{By: costs.Day, Since: "2026-03-04", Until: "2026-03-05"}, "2026-03-04 1/0/2 12; all 1/0/2 12")
	s.want(costs.Request{By: costs.Directive, Until: "2027-01-01"}, "b 1/1/3 121; a 1/0/2 12; all 2/1/5 133")
	s.want(costs.Request{By: costs.Day, Until: "2026-02-01"}, "2026-01-23 1/0/1 1000; all 1/0/1 1000")
	// 11:00 UTC is the next day there.
	s.want(costs.Request{By: costs.Day, Since: "2026-03-05", Until: "2026-03-06", Zone: time.FixedZone("", 14*3600)}, "2026-03-05 1/0/2 12; all 1/0/2 12")
}

// TestFallbackIsTold: rows know the model that a thread began with alone, and an answer by
// them says so where models are told apart. By transcripts each call is its model's.
func TestFallbackIsTold(t *testing.T) {
	t.Parallel()
	s := openScene(t)
	s.thread("a", time.Hour, thread.Completed, call{0, "p/first", 0}, call{time.Minute, "p/fallback", 7})
	const word = "whichever model answered: where a fallback did, exact counts the calls of each"
	for _, c := range []struct {
		req  costs.Request
		want string
		told bool
	}{
		{costs.Request{By: costs.Model}, "p/first 1/0/2 7; all 1/0/2 7", true},
		{costs.Request{By: costs.Model, Exact: true, Until: "2026-03-05"}, "p/fallback 0/0/1 7; p/first 1/0/1 0; all 1/0/2 7", false},
		{costs.Request{By: costs.Directive}, "a 1/0/2 7; all 1/0/2 7", false},
	} {
		s.want(c.req, c.want)
		table, err := s.costs.Table(s.ctx, c.req)
		s.noError(err)
		if strings.Contains(table.Covers, word) != c.told {
			t.Errorf("%+v covers %q", c.req, table.Covers)
		}
	}
	series, err := s.costs.OverTime(s.ctx, costs.Request{By: costs.Model})
	s.noError(err)
	if !strings.Contains(series.Covers, word) {
		t.Errorf("over time it covers %q", series.Covers)
	}
}

// TestImported holds that what was paid for where it ran costs nothing here, by rows and by
// transcripts.
func TestImported(t *testing.T) {
	t.Parallel()
	s := openScene(t)
	s.thread("a", time.Hour, thread.Completed, call{0, "p/m", 5})
	at := noon.Add(-time.Hour)
	done, err := s.store.Restore(s.ctx, []store.Restored{{Record: thread.Record{
		ThreadID: "b-1772323200", Kind: thread.KindDirective, Directive: "b", Model: "p/m", Status: thread.Completed, Outcome: &thread.Outcome{State: thread.Completed},
		CreatedAt: at, UpdatedAt: at, CompletedAt: at, LastUsed: at, Cost: thread.Cost{Turns: 1, Spend: 100},
		Metadata: thread.Imported{Signer: "f", Recording: "r", At: at}.Metadata(),
	}}})
	s.noError(err)
	if done.Threads != 1 {
		t.Fatalf("restored %+v", done)
	}
	for _, exact := range []bool{false, true} {
		s.want(costs.Request{By: costs.Directive, Exact: exact}, "a 1/0/1 5; all 1/0/1 5")
	}
}

func TestDeleted(t *testing.T) {
	t.Parallel()
	s := openScene(t)
	gone := s.thread("a", time.Hour, thread.Completed, call{0, "p/m", 5})
	s.thread("a", time.Hour, thread.Completed, call{0, "p/m", 7})
	refused, err := s.store.Delete(s.ctx, [][]thread.ID{{gone}}, s.now)
	s.noError(err)
	s.noError(refused[0])
	s.noError(s.store.RestoreGone(s.ctx, store.Gone{Days: map[int64]thread.Micros{noon.Unix() / 86400: 105}}))
	s.now = noon.Add(time.Hour)
	for _, exact := range []bool{false, true} {
		s.want(costs.Request{By: costs.Directive, Exact: exact}, "(deleted) 0/0/0 100; a 2/0/2 12; all 2/0/2 112")
		table, err := s.costs.Table(s.ctx, costs.Request{By: costs.Model, Exact: exact})
		s.noError(err)
		if table.Total.Deleted != 1 || !strings.Contains(table.Covers, "1 of them was deleted and counts on the day of its start") || !strings.Contains(table.Covers, "$0.0001 of deleted threads") {
			t.Errorf("it covers %q", table.Covers)
		}
	}
}

func TestOverTime(t *testing.T) {
	t.Parallel()
	s := openScene(t)
	s.thread("a", 90*time.Minute, thread.Completed, call{0, "p/m", 5})
	s.thread("a", 30*time.Minute, thread.Error, call{0, "p/m", 6})
	for i := range 14 {
		s.thread(fmt.Sprintf("d%02d", i), 8*day, thread.Completed, call{0, "p/m", thread.Micros(100 - i)})
	}
	series := func(r costs.Request) costs.Series {
		t.Helper()
		got, err := s.costs.OverTime(s.ctx, r)
		s.noError(err)
		return got
	}
	hours := series(costs.Request{By: costs.Directive, Since: "3h"})
	text := fmt.Sprintf("%s %d %s %d %d %d", hours.Bucket, len(hours.At), hours.At[0].Format(time.TimeOnly), hours.Lines[0].Spend, hours.Lines[0].Errors, len(hours.Lines))
	if text != "hour 3 09:00:00 [0 5 6] [0 0 1] 1" {
		t.Errorf("hours: %s", text)
	}
	if got := series(costs.Request{Since: "10d"}); got.Bucket != costs.Days || len(got.At) != 11 || got.Total.Spend[2] == 0 || got.Total.Spend[10] != 11 || len(got.Lines) != 1 {
		t.Errorf("days: %+v", got)
	}
	weeks := series(costs.Request{By: costs.Directive, Since: "all", Bucket: costs.Weeks})
	if len(weeks.At) != 2 || weeks.At[0].Weekday() != time.Monday || len(weeks.Lines) != 12 || weeks.Lines[11].Key != costs.Others {
		t.Errorf("weeks: %d, %d lines: %+v", len(weeks.At), len(weeks.Lines), weeks)
	}
	sum := thread.Micros(0)
	for _, l := range weeks.Lines {
		sum += l.Spend[0] + l.Spend[1]
	}
	if total := weeks.Total.Spend[0] + weeks.Total.Spend[1]; sum != total || total == 0 {
		t.Errorf("the lines come to %s of %s", sum, total)
	}
	if shown, err := json.Marshal(series(costs.Request{Since: "2026-03-04", Until: "2026-03-05", By: costs.Model})); err != nil || !strings.Contains(string(shown), `"lines":[{"key":"p/m","spend":[`) {
		t.Errorf("%s, %v", shown, err)
	}
}

// TestDaysWithoutMidnight counts the days of a zone whose clocks go forward over midnight.
func TestDaysWithoutMidnight(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("America/Santiago")
	if err != nil {
		t.Fatal(err)
	}
	s := openScene(t)
	s.now = time.Date(2026, 9, 8, 12, 0, 0, 0, time.UTC)
	s.thread("before", 56*time.Hour+30*time.Minute, thread.Completed, call{0, "p/m", 3}) // 23:30 of the 5th
	s.thread("after", 55*time.Hour+30*time.Minute, thread.Completed, call{0, "p/m", 5})  // 01:30 of the 6th
	s.want(costs.Request{By: costs.Day, Zone: zone}, "2026-09-05 1/0/1 3; 2026-09-06 1/0/1 5; all 2/0/2 8")
	s.want(costs.Request{By: costs.Day, Since: "2026-09-06", Zone: zone}, "2026-09-06 1/0/1 5; all 1/0/1 5")
	got, err := s.costs.OverTime(s.ctx, costs.Request{Since: "2026-09-01", Until: "2026-09-08", Bucket: costs.Days, Zone: zone})
	s.noError(err)
	if len(got.At) != 7 || got.Total.Spend[4] != 3 || got.Total.Spend[5] != 5 {
		t.Errorf("%d days from %s: %v", len(got.At), got.At[0], got.Total.Spend)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	s := openScene(t)
	for _, r := range []costs.Request{
		{By: "name"}, {By: costs.Day, Since: "x"}, {By: costs.Day, Since: "-3d"}, {By: costs.Day, Since: "1d", Until: "2d"}, {By: costs.Day, Until: "1970-01-01", Since: "2026-01-01"}, {By: costs.Day, Since: "all", Until: "soon"},
		{By: costs.Day, Since: "2026-02-31"}, {By: costs.All},
	} {
		if table, err := s.costs.Table(s.ctx, r); err == nil || tool.AsFault(err).Code != tool.CodeBadArguments {
			t.Errorf("%+v: %+v, %v", r, table, err)
		}
	}
	for _, r := range []costs.Request{{By: costs.Day}, {Bucket: "minute"}, {Bucket: costs.Hours, Since: "365d"}} {
		if got, err := s.costs.OverTime(s.ctx, r); err == nil || tool.AsFault(err).Code != tool.CodeBadArguments {
			t.Errorf("%+v: %+v, %v", r, got, err)
		}
	}
}

// TestSums holds that whatever threads have done, every answer comes to what the rows
// say.
func TestSums(t *testing.T) {
	t.Parallel()
	s := openScene(t)
	random := rand.New(rand.NewPCG(1, 2))
	var sum thread.Micros
	for range 8 {
		for range 4 {
			var calls []call
			after := time.Duration(0)
			for range random.IntN(5) {
				after += time.Duration(random.IntN(30)) * time.Hour
				c := call{after, []string{"p/m", "p/n"}[random.IntN(2)], thread.Micros(random.IntN(10))}
				calls, sum = append(calls, c), sum+c.spend
			}
			s.thread([]string{"a", "b"}[random.IntN(2)], time.Duration(200+random.IntN(300))*time.Hour, thread.Completed, calls...)
		}
		for _, exact := range []bool{false, true} {
			zone := time.FixedZone("", []int{0, 3600, -12600, 20700}[random.IntN(4)])
			for _, by := range []costs.By{costs.Directive, costs.Model, costs.Day} {
				table, err := s.costs.Table(s.ctx, costs.Request{By: by, Exact: exact, Zone: zone})
				s.noError(err)
				rows := thread.Micros(0)
				for _, r := range table.Rows {
					rows += r.Spend
				}
				if table.Total.Spend != sum || rows != sum {
					t.Fatalf("%s, exact %v: %d in rows, %d in all, want %d", by, exact, rows, table.Total.Spend, sum)
				}
			}
			for _, bucket := range []costs.Bucket{costs.Hours, costs.Days, costs.Weeks} {
				series, err := s.costs.OverTime(s.ctx, costs.Request{By: costs.Model, Exact: exact, Bucket: bucket, Zone: zone})
				s.noError(err)
				all := thread.Micros(0)
				for _, n := range series.Total.Spend {
					all += n
				}
				if all != sum {
					t.Fatalf("by %s, exact %v: %d, want %d", bucket, exact, all, sum)
				}
			}
		}
	}
}

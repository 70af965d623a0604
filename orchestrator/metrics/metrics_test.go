package metrics

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// house is a project with a collector.
type house struct {
	testing.TB
	storetest.Any
	c   *Collector
	now time.Time
}

func newHouse(t testing.TB) *house {
	t.Helper()
	h := &house{TB: t, now: noon}
	inner, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{Now: func() time.Time { return h.now }})
	h.must(err)
	t.Cleanup(func() { _ = inner.Close() })
	h.Any = storetest.Any{Store: inner}
	h.c = New(Options{
		Version: "v1", Started: noon, Now: func() time.Time { return h.now }, Log: zerolog.Nop(),
		Projects: func() []Project { return []Project{{Path: "/p", Rows: inner}} },
	})
	return h
}

func (h *house) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// scrape lets a time pass in which a look does not hold, and scrapes twice: a new series is
// 0 at first.
func (h *house) scrape() map[string]string {
	h.Helper()
	h.now = h.now.Add(2 * time.Second)
	return scraped(h, h.c)
}

func scraped(t testing.TB, c *Collector) map[string]string {
	t.Helper()
	parse(t, c.Text(t.Context()))
	return parse(t, c.Text(t.Context()))
}

func (h *house) start(directive, model string) thread.ID {
	h.Helper()
	rec, _, err := h.Register(h.Context(), store.NewThread{Kind: thread.KindDirective, Directive: directive, Model: model, Now: h.now}, func(thread.ID) error { return nil })
	h.must(err)
	_, err = h.Enqueue(h.Context(), rec.ThreadID, 1000, h.now)
	h.must(err)
	_, err = h.Apply(h.Context(), store.Claimed(rec.ThreadID, thread.Process{PID: 1, Host: "h"}, h.now))
	h.must(err)
	return rec.ThreadID
}

func (h *house) end(id thread.ID, o thread.Outcome, cost *thread.Cost) {
	h.Helper()
	c, err := store.Finished(id, o, cost, h.now)
	h.must(err)
	_, err = h.Apply(h.Context(), c)
	h.must(err)
}

func (h *house) want(got map[string]string, want map[string]string) {
	h.Helper()
	for name, value := range want {
		if got[name] != value {
			h.Errorf("%s is %q, want %q", name, got[name], value)
		}
	}
}

// parse holds a text against the format, and returns values by what stands before them.
func parse(t testing.TB, text []byte) map[string]string {
	t.Helper()
	values, types := map[string]string{}, map[string]string{}
	family := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "# HELP "); ok {
			family, _, _ = strings.Cut(name, " ")
			continue
		}
		if name, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(name, " ")
			if types[name] != "" || name != family {
				t.Errorf("%q stands twice or in the wrong place", line)
			}
			types[name] = kind
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		if at < 0 {
			t.Fatalf("no sample: %q", line)
		}
		name := line[:at]
		bare, labels, _ := strings.Cut(name, "{")
		if base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(bare, "_bucket"), "_sum"), "_count"); bare != family && base != family {
			t.Errorf("%q among %s", line, family)
		}
		if labels != "" && !wellFormed(labels) {
			t.Errorf("labels %q", labels)
		}
		if _, twice := values[name]; twice {
			t.Errorf("%s stands twice", name)
		}
		values[name] = line[at+1:]
	}
	return values
}

// wellFormed reads labels as Prometheus does.
func wellFormed(labels string) bool {
	for {
		name, rest, ok := strings.Cut(labels, `="`)
		if !ok || name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" {
			return false
		}
		end := 0
		for end < len(rest) && rest[end] != '"' {
			if rest[end] == '\\' {
				if end++; end == len(rest) || !strings.ContainsRune(`\n"`, rune(rest[end])) {
					return false
				}
			}
			end++
		}
		if end == len(rest) {
			return false
		}
		labels = rest[end+1:]
		if labels == "}" {
			return true
		}
		if labels, ok = strings.CutPrefix(labels, ","); !ok {
			return false
		}
	}
}

func TestThreads(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.want(h.scrape(), map[string]string{
		`rye_build_info{version="v1"}`: "1", "process_start_time_seconds": "1.7726256e+09", `rye_project_up{project="/p"}`: "1",
		`rye_threads{project="/p",state="running"}`: "0", `rye_threads_kept{project="/p"}`: "0", `rye_queue_oldest_seconds{project="/p"}`: "0",
	})
	first := h.start("work", "fake/m")
	h.must(h.RecordCost(h.Context(), first, thread.Cost{Turns: 1, InputTokens: 10, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4, Spend: 1500}, 10))
	h.want(h.scrape(), map[string]string{
		`rye_threads{project="/p",state="running"}`:                                        "1",
		`rye_threads_started_total{project="/p",kind="directive",directive="work"}`:        "1",
		`rye_turns_total{project="/p",directive="work"}`:                                   "1",
		`rye_spend_dollars_total{project="/p",directive="work",model="fake/m"}`:            "0.0015",
		`rye_tokens_total{project="/p",model="fake/m",kind="input"}`:                       "10",
		`rye_queue_seconds_count{project="/p"}`:                                            "1",
		`rye_threads_ended_total{project="/p",kind="directive",directive="work",state=""}`: "",
	})
	q := thread.Question{ID: "q", ThreadID: first, Kind: thread.AskLimit, Options: []thread.Decision{thread.Stop}, Default: thread.Stop, AskedAt: h.now, DeadlineAt: h.now}
	h.must(h.Ask(h.Context(), q))
	second := h.start("work", "fake/m")
	h.must(h.Yield(h.Context(), second, true))
	h.want(h.scrape(), map[string]string{
		`rye_questions_open{project="/p",kind="limit"}`: "1", `rye_question_oldest_seconds{project="/p"}`: "2", `rye_threads{project="/p",state="waiting"}`: "1",
	})
	h.end(first, thread.Outcome{State: thread.Completed}, &thread.Cost{Turns: 2, InputTokens: 11, OutputTokens: 4, CacheReadTokens: 3, CacheWriteTokens: 4, Spend: 2000})
	h.end(second, thread.Outcome{State: thread.Error, Error: &thread.Problem{Code: "spend_exceeded"}}, nil)
	want := map[string]string{
		`rye_threads{project="/p",state="running"}`: "0", `rye_threads_kept{project="/p"}`: "2",
		`rye_threads_ended_total{project="/p",kind="directive",directive="work",state="completed"}`: "1",
		`rye_threads_ended_total{project="/p",kind="directive",directive="work",state="error"}`:     "1",
		`rye_thread_errors_total{project="/p",code="spend_exceeded"}`:                               "1",
		`rye_turns_total{project="/p",directive="work"}`:                                            "2",
		`rye_spend_dollars_total{project="/p",directive="work",model="fake/m"}`:                     "0.002",
		`rye_tokens_total{project="/p",model="fake/m",kind="output"}`:                               "4",
		`rye_thread_seconds_bucket{project="/p",state="completed",le="1"}`:                          "0",
		`rye_thread_seconds_bucket{project="/p",state="completed",le="5"}`:                          "1",
		`rye_thread_seconds_bucket{project="/p",state="completed",le="+Inf"}`:                       "1",
		`rye_thread_seconds_sum{project="/p",state="completed"}`:                                    "4",
		`rye_questions_open{project="/p",kind="limit"}`:                                             "0",
	}
	h.want(h.scrape(), want)
	h.want(h.scrape(), want)
	h.now = h.now.Add(time.Hour)
	h.want(h.scrape(), want)
	if n := len(h.c.tracked["/p"].known); n != 2 {
		h.Errorf("%d threads are remembered, want those of the last look", n)
	}
	h.start("work", "fake/m")
	h.now = h.now.Add(time.Hour)
	h.scrape()
	h.scrape()
	if n := len(h.c.tracked["/p"].known); n != 1 {
		h.Errorf("%d threads are remembered, of which one runs", n)
	}
}

// What was before the server is not counted; a thread that was alive counts from then on.
func TestBeforeTheServer(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.now = noon.Add(-time.Hour)
	old, alive := h.start("work", "fake/m"), h.start("work", "fake/m")
	h.end(old, thread.Outcome{State: thread.Completed}, &thread.Cost{Turns: 7, Spend: 7})
	h.must(h.RecordCost(h.Context(), alive, thread.Cost{Turns: 3, Spend: 300}, 1))
	h.now = noon
	got := h.scrape()
	h.want(got, map[string]string{`rye_threads{project="/p",state="running"}`: "1", `rye_turns_total{project="/p",directive="work"}`: ""})
	h.must(h.RecordCost(h.Context(), alive, thread.Cost{Turns: 4, Spend: 400}, 1))
	h.scrape()
	h.must(h.RecordCost(h.Context(), alive, thread.Cost{Turns: 6, Spend: 600}, 1))
	h.want(h.scrape(), map[string]string{
		`rye_turns_total{project="/p",directive="work"}`:                                            "2",
		`rye_threads_started_total{project="/p",kind="directive",directive="work"}`:                 "",
		`rye_threads_ended_total{project="/p",kind="directive",directive="work",state="completed"}`: "",
	})
}

// Counters never go back and count everything once, whatever happens in which order.
func TestCountersOnlyGrow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rows := &fakeRows{threads: map[thread.ID]thread.Record{}}
		now := noon
		c := New(Options{Started: noon, Now: func() time.Time { return now }, Log: zerolog.Nop(), Projects: func() []Project { return []Project{{Path: "/p", Rows: rows}} }})
		before, ended, turns, lost := map[string]int64{}, int64(0), int64(0), false
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(1001, 60_000).Draw(t, "ms")) * time.Millisecond)
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				rows.put(thread.Record{ThreadID: thread.ID(fmt.Sprint(len(rows.all))), Status: thread.Running, CreatedAt: now, LastUsed: now})
			case 1:
				turns += rows.change(t, func(r *thread.Record) { r.Cost.Turns += 2; r.LastUsed = now }) * 2
			case 2:
				ended += rows.change(t, func(r *thread.Record) { r.Status, r.CompletedAt, r.LastUsed = thread.Completed, now, now })
			case 3:
				rows.down = !rows.down
			case 5:
				open := rapid.Bool().Draw(t, "open")
				lost = lost || !open
				rows.remove(now, open)
			case 4:
				c.Text(t.Context())
				for _, f := range c.families.all {
					for key, s := range f.series {
						if f.kind != gauge && s.n < before[f.name+key] {
							t.Fatalf("%s went from %d to %d", f.name, before[f.name+key], s.n)
						}
						before[f.name+key] = s.n
					}
				}
			}
		}
		rows.down = false
		now = now.Add(2 * time.Second)
		c.Text(t.Context())
		if got := total(c.families.ended); got != ended {
			t.Fatalf("%d threads have ended, %d were counted", ended, got)
		}
		if got := total(c.families.turns); got > turns || got < turns && !lost {
			t.Fatalf("%d turns, %d were counted", turns, got)
		}
	})
}

func total(f *family) (sum int64) {
	for _, s := range f.series {
		sum += s.n
	}
	return sum
}

// fakeRows are rows without a database.
type fakeRows struct {
	threads map[thread.ID]thread.Record
	all     []thread.ID
	gone    []store.Deletion
	down    bool
}

func (r *fakeRows) put(rec thread.Record) {
	r.threads[rec.ThreadID] = rec
	r.all = append(r.all, rec.ThreadID)
}

// change changes one that runs, if there is any.
func (r *fakeRows) change(t *rapid.T, f func(*thread.Record)) int64 {
	if len(r.all) == 0 {
		return 0
	}
	id := rapid.SampledFrom(r.all).Draw(t, "thread")
	rec := r.threads[id]
	if rec.Status != thread.Running {
		return 0
	}
	f(&rec)
	r.threads[id] = rec
	return 1
}

// remove deletes all that have ended; open says that their files are still there.
func (r *fakeRows) remove(now time.Time, open bool) {
	for _, id := range r.all {
		rec, there := r.threads[id]
		if !there || !rec.Status.Terminal() {
			continue
		}
		delete(r.threads, id)
		d := store.Deletion{Seq: int64(len(r.gone) + 1), Record: rec, At: now, Open: open}
		if !open {
			d.Record = thread.Record{ThreadID: id, CreatedAt: rec.CreatedAt}
		}
		r.gone = append(r.gone, d)
	}
}

func (r *fakeRows) Deletions(_ context.Context, f store.DeletionFilter) ([]store.Deletion, error) {
	if r.down {
		return nil, errDown
	}
	return r.gone[min(int(f.After), len(r.gone)):], nil
}

var errDown = errors.New("the store is down")

func (r *fakeRows) List(_ context.Context, f store.Filter) (rows []thread.Record, _ string, err error) {
	if r.down {
		return nil, "", errDown
	}
	for _, id := range r.all {
		if rec, there := r.threads[id]; there && !rec.LastUsed.Before(f.UsedSince) {
			rows = append(rows, rec)
		}
	}
	return rows, "", nil
}

func (r *fakeRows) Known(_ context.Context, ids []thread.ID) (map[thread.ID]bool, error) {
	known := map[thread.ID]bool{}
	for _, id := range ids {
		_, known[id] = r.threads[id]
	}
	return known, nil
}

func (r *fakeRows) Census(context.Context) (store.Counts, error) {
	if r.down {
		return store.Counts{}, errDown
	}
	return store.Counts{Running: len(r.threads)}, nil
}

func (r *fakeRows) Stats(context.Context, store.StatsSince) (store.Stats, error) {
	return store.Stats{Threads: len(r.threads)}, nil
}

// A store that cannot be read is said to be down; its counters stay.
func TestDown(t *testing.T) {
	t.Parallel()
	rows := &fakeRows{threads: map[thread.ID]thread.Record{}}
	now := noon
	c := New(Options{Started: noon, Now: func() time.Time { now = now.Add(2 * time.Second); return now }, Log: zerolog.Nop(), Projects: func() []Project { return []Project{{Path: "/p", Rows: rows}} }})
	rows.put(thread.Record{ThreadID: "t", Kind: thread.KindDirective, Directive: "d", Status: thread.Running, CreatedAt: now, LastUsed: now})
	c.Text(t.Context())
	rows.down = true
	got := scraped(t, c)
	if got[`rye_project_up{project="/p"}`] != "0" || got[`rye_threads_started_total{project="/p",kind="directive",directive="d"}`] != "1" {
		t.Errorf("%v", got)
	}
	if _, there := got[`rye_threads{project="/p",state="running"}`]; there {
		t.Error("a gauge of nobody knows when")
	}
}

// The clock of the machine is put back by an hour: events from then on count.
func TestClockPutBack(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.start("a", "m")
	h.scrape()
	h.now = h.now.Add(-time.Hour)
	h.scrape()
	h.start("b", "m")
	h.want(h.scrape(), map[string]string{
		`rye_threads_started_total{project="/p",kind="directive",directive="a"}`: "1",
		`rye_threads_started_total{project="/p",kind="directive",directive="b"}`: "1",
	})
}

// TestAttackNamesInMetrics: directives, models and error codes have names with quotes, line ends, escapes and bytes that are no text, and there are a thousand of them. The text stays well-formed, no name makes a line of its own, and each label has a bounded number of values.
func TestAttackNamesInMetrics(t *testing.T) {
	t.Parallel()
	rows := &fakeRows{threads: map[thread.ID]thread.Record{}}
	now := noon
	c := New(Options{Version: "v\"\n", Started: noon, Now: func() time.Time { now = now.Add(2 * time.Second); return now }, Log: zerolog.Nop(), Projects: func() []Project {
		return []Project{{Path: "/p\"} 1\nrye_up 5\n#", Rows: rows}}
	}})
	for i := range 1000 {
		name := fmt.Sprintf("%d\"} 7\nrye_threads_kept 9\n\\\x1b[31m\x00\xff\u202e%s", i, strings.Repeat("x", i))
		rows.put(thread.Record{
			ThreadID: thread.ID(fmt.Sprint(i)), Kind: thread.KindDirective, Directive: name, Model: name, Status: thread.Error, CreatedAt: now, LastUsed: now, CompletedAt: now,
			Cost: thread.Cost{Turns: 1, Spend: 1, InputTokens: 1}, Outcome: &thread.Outcome{Error: &thread.Problem{Code: name}},
		})
	}
	text := c.Text(t.Context())
	got := parse(t, text)
	for name := range got {
		if strings.ContainsAny(name, "\x1b\x00\u202e\r") || !utf8.ValidString(name) {
			t.Fatalf("%q", name)
		}
	}
	if len(got) > 15_000 || len(text) > 4<<20 {
		t.Errorf("%d series in %d bytes", len(got), len(text))
	}
	if sum := total(c.families.ended); sum != 1000 {
		t.Errorf("%d of 1000 are counted", sum)
	}
	if n := len(c.families.started.series); n != mostDirectives+1 {
		t.Errorf("%d directives", n)
	}
}

// source is a transcript without a file.
type source struct {
	records.Source
	*bytes.Reader
}

func (s source) Open() (records.Reader, error) { return s, nil }
func (s source) Close() error                  { return nil }
func (s source) Size() (int64, error)          { return s.Reader.Size(), nil }
func (s source) Stamp() (records.Stamp, error) { return records.Stamp{Size: s.Reader.Size()}, nil }

// What threads did is counted when they have ended, so many of them with each scrape.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	rows := &fakeRows{threads: map[thread.ID]thread.Record{}}
	now := noon
	var text bytes.Buffer
	for i, e := range []struct {
		ms   int64
		typ  thread.EventType
		said string
	}{
		{100, thread.EventCognitionRequest, `{"turn":1,"model":"p/m"}`},
		{150, thread.EventErrorClassified, `{"turn":1,"attempt":1,"model":"p/m","category":"rate_limited","message":"x"}`},
		{150, thread.EventRetry, `{"turn":1,"attempt":2}`},
		{400, thread.EventCognitionRequest, `{"turn":1,"model":"p/m","attempt":2}`},
		{500, thread.EventTokenDelta, `{"turn":1}`},
		{900, thread.EventCognitionOut, `{"turn":1,"model":"p/m","stop_reason":"tool_use"}`},
		{900, thread.EventToolCallStart, `{"turn":1,"call_id":"a","tool":"rye_bash"}`},
		{1000, thread.EventToolCallResult, `{"turn":1,"call_id":"a","tool":"rye_bash","is_error":true,"text":"no"}`},
		{1000, thread.EventThreadCompleted, `{"outcome":{"status":"completed"}}`},
	} {
		_, _ = fmt.Fprintf(&text, `{"timestamp":%q,"thread_id":"t","seq":%d,"event_type":%q,"payload":%s}`+"\n",
			noon.Add(time.Duration(e.ms)*time.Millisecond).Format(time.RFC3339Nano), i+1, e.typ, e.said)
	}
	c := New(Options{Started: noon, Now: func() time.Time { now = now.Add(2 * time.Second); return now }, Log: zerolog.Nop(), Projects: func() []Project {
		return []Project{{Path: "/p", Rows: rows, Transcript: func(thread.ID) records.Source { return source{Reader: bytes.NewReader(text.Bytes())} }}}
	}})
	const threads = mostTranscripts + 10
	for i := range threads {
		rows.put(thread.Record{
			ThreadID: thread.ID(fmt.Sprint(i)), Kind: thread.KindDirective, Directive: "d", Status: thread.Completed,
			CreatedAt: noon, LastUsed: noon.Add(time.Second), CompletedAt: noon.Add(time.Second),
		})
	}
	if got := parse(t, c.Text(t.Context()))[`rye_transcripts_unread{project="/p"}`]; got != "10" {
		t.Errorf("%s are unread", got)
	}
	got := scraped(t, c)
	for name, want := range map[string]string{
		`rye_transcripts_unread{project="/p"}`:                                     "0",
		`rye_model_request_seconds_count{project="/p",model="p/m"}`:                fmt.Sprint(threads),
		`rye_model_request_seconds_sum{project="/p",model="p/m"}`:                  fmt.Sprint(threads / 2),
		`rye_model_first_piece_seconds_bucket{project="/p",model="p/m",le="0.08"}`: "0",
		`rye_model_first_piece_seconds_bucket{project="/p",model="p/m",le="0.16"}`: fmt.Sprint(threads),
		`rye_model_errors_total{project="/p",model="p/m",class="rate_limited"}`:    fmt.Sprint(threads),
		`rye_backoff_seconds_total{project="/p"}`:                                  fmt.Sprint(threads / 4.0),
		`rye_tool_calls_total{project="/p",tool="rye_bash",outcome="error"}`:       fmt.Sprint(threads),
		`rye_tool_seconds_sum{project="/p"}`:                                       fmt.Sprint(threads / 10),
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

// BenchmarkRatioScrape compares a scrape of a project of 20 000 threads that have ended with
// one of 1 000.
func BenchmarkRatioScrape(b *testing.B) {
	houses := []*house{newHouse(b), newHouse(b)}
	for i, n := range []int{1000, 20_000} {
		rows := make([]store.Restored, n)
		for j := range rows {
			at := noon.Add(-time.Hour - time.Duration(j)*time.Millisecond)
			rows[j].Record = thread.Record{
				ThreadID: thread.NewID("d", at, j+1), Kind: thread.KindDirective, Directive: "d", Status: thread.Completed, CreatedAt: at, UpdatedAt: at, LastUsed: at,
				CompletedAt: at, Outcome: &thread.Outcome{State: thread.Completed},
			}
		}
		_, err := houses[i].Restore(b.Context(), rows)
		houses[i].must(err)
		houses[i].start("d", "m")
		houses[i].scrape()
	}
	took := [2][]time.Duration{}
	for range 50 {
		for i, h := range houses {
			h.must(h.RecordCost(h.Context(), h.start("d", "m"), thread.Cost{Turns: 1}, 1)) // somebody has committed
			began := time.Now()
			h.scrape()
			took[i] = append(took[i], time.Since(began))
		}
	}
	for i := range took {
		slices.Sort(took[i])
	}
	few, many := took[0][25], took[1][25]
	b.Run("scrape of metrics with 20 000 threads/with 1 000/nothing is written", func(b *testing.B) {
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(many)/float64(few), "x-baseline")
		b.ReportMetric(1.5, "x-goal")
		b.Logf("%v against %v", many, few)
	})
}

// A series begins at 0, so that what it says first is an increase; then it says what it is.
func TestBeginsAtZero(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.start("d", "m")
	const started, queued = `rye_threads_started_total{project="/p",kind="directive",directive="d"}`, `rye_queue_seconds_count{project="/p"}`
	for i, want := range []string{"0", "1", "1"} {
		if got := parse(t, h.c.Text(t.Context())); got[started] != want || got[queued] != want || got[`rye_threads{project="/p",state="running"}`] != "1" {
			t.Errorf("scrape %d: %s started, %s queued", i, got[started], got[queued])
		}
	}
}

func TestServeHTTP(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	w := httptest.NewRecorder()
	h.c.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/plain; version=0.0.4; charset=utf-8" || !strings.HasSuffix(w.Body.String(), "\n") {
		t.Errorf("%d %v\n%s", w.Code, w.Header(), w.Body)
	}
}

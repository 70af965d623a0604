package memory_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/memory"
	"github.com/rye-mcp/rye-mcp/runtime/rag"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	entries "github.com/rye-mcp/rye-mcp/tools/builtin/memory"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// scene is the memory of one project.
type scene struct {
	t testing.TB
	*memory.Book
	index *rag.Index
	now   time.Time
}

func person() entries.Writer { return entries.Writer{By: entries.ByPerson} }

func client() entries.Writer { return entries.Writer{By: entries.ByClient} }

func threadWriter(id string) entries.Writer {
	return entries.Writer{By: entries.ByThread, Thread: thread.ID(id), ChainRoot: thread.ID(id), Directive: "team/" + id}
}

func newKey(t testing.TB, seed uint64) *sign.Key {
	t.Helper()
	var random [32]byte
	rng := rand.NewChaCha8([32]byte{byte(seed)})
	_, _ = rng.Read(random[:])
	key, err := sign.Generate(t.TempDir(), false, bytes.NewReader(random[:]))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newScene(t testing.TB) *scene {
	t.Helper()
	return sceneIn(t, filepath.Join(t.TempDir(), "memory.db"), place.NewSeal(newKey(t, 1), "here"))
}

func sceneIn(t testing.TB, path string, seal *place.Seal) *scene {
	t.Helper()
	s := &scene{t: t, index: rag.New(rag.At(path, "mark")), now: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)}
	t.Cleanup(func() {
		if err := s.index.Close(); err != nil {
			t.Error(err)
		}
	})
	s.Book = memory.New(memory.Deps{
		Index: s.index, Seal: seal, Project: "/project", Lock: lockAt(path + ".writers"),
		MayActOn: func(_ context.Context, caller, id thread.ID) error {
			if caller == id || strings.HasPrefix(string(id), string(caller)+".") {
				return nil
			}
			return tool.Faultf(tool.CodePermissionDenied, "not below")
		},
		Returned: func(_ context.Context, id thread.ID) (memory.Returned, error) {
			return memory.Returned{}, fmt.Errorf("%s: %w", id, thread.ErrNotFound)
		},
		Settings: memory.Settings{Limit: 5, MinFloor: 0.3, ScoreRatio: 0.2, MaxTokens: 2000},
		Now:      func() time.Time { s.now = s.now.Add(time.Minute); return s.now },
	})
	return s
}

// lockAt is a lock between processes.
func lockAt(path string) func(context.Context) (func(), error) {
	return func(ctx context.Context) (func(), error) {
		for ctx.Err() == nil {
			lock, err := process.Acquire(path)
			if err == nil {
				return func() { _ = lock.Release() }, nil
			}
			if !errors.Is(err, process.ErrLocked) {
				return nil, err
			}
		}
		return nil, ctx.Err()
	}
}

func (s *scene) write(by entries.Writer, kind entries.Kind, title, text string, supersedes ...string) entries.Wrote {
	s.t.Helper()
	wrote, err := s.Write(s.t.Context(), by, entries.New{Kind: kind, Title: title, Text: text, Supersedes: supersedes})
	if err != nil {
		s.t.Fatal(err)
	}
	return wrote
}

func (s *scene) recall(text string) entries.Recalled {
	s.t.Helper()
	found, err := s.Recall(s.t.Context(), entries.Question{Text: text})
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}

// titles are those of all entries, newest first, with + for what is history.
func (s *scene) titles() []string {
	s.t.Helper()
	all, err := s.List(s.t.Context(), entries.Filter{History: true})
	if err != nil {
		s.t.Fatal(err)
	}
	titles := []string{}
	for _, e := range all.Entries {
		title := e.Title
		if !e.Current() {
			title = "+" + title
		}
		titles = append(titles, title)
	}
	return titles
}

// refused is what a fault says.
func refused(t testing.TB, err error, code tool.Code) string {
	t.Helper()
	f, ok := errors.AsType[*tool.Fault](err)
	if !ok || f.Code != code {
		t.Fatalf("%v, want a fault with %s", err, code)
	}
	return f.Message
}

func TestWriteAndRecall(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	a := s.write(threadWriter("one"), entries.Decision, "UUIDs for games", "game_id is a UUID and no integer, since ids are made by the clients")
	s.write(threadWriter("two"), entries.Discovery, "Rate limit of the catalogue", "the catalogue API allows 100 requests a minute for each key")
	found := s.recall("which type has game_id")
	if found.Count != 1 || found.Entries[0].Key != a.Key {
		t.Fatalf("%+v", found)
	}
	want := entries.Introduction + "\n" + `<knowledge key="` + a.Key + `" kind="decision" by="thread" thread="one" directive="team/one" at="2026-05-04" trust="unverified">
UUIDs for games
game_id is a UUID and no integer, since ids are made by the clients
</knowledge>`
	if found.Knowledge != want {
		t.Errorf("%s", found.Knowledge)
	}
	if again := s.recall("which type has game_id"); again.Knowledge != found.Knowledge {
		t.Error("the same question has another answer")
	}
	if none := s.recall("weather tomorrow"); none.Count != 0 || none.Knowledge != "" {
		t.Errorf("%+v", none)
	}
}

// An entry that shares only a common word with a long directive is no answer to it.
func TestRecallByWordsNeedsMoreThanOne(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.write(threadWriter("one"), entries.Discovery, "Parser", "the parser keeps line numbers of each element it reads")
	s.write(threadWriter("one"), entries.Workaround, "Notify", "listeners of the queue must call pg_notify after commit")
	long := "Implement the checkout of the shop: validate the cart, reserve each article, take the payment, send a mail, write tests, " +
		"and report what was done with the numbers of lines that changed. "
	if found := s.recall(long); found.Count != 0 {
		t.Errorf("%s", found.Knowledge)
	}
	if found := s.recall(long + "Orders go through the queue, whose listeners call pg_notify."); found.Count != 1 || found.Entries[0].Title != "Notify" {
		t.Errorf("%s", found.Knowledge)
	}
	if found := s.recall("parsers"); found.Count != 0 { // FTS5 knows no plurals
		t.Errorf("%s", found.Knowledge)
	}
	if found := s.recall("the parser"); found.Count != 1 {
		t.Errorf("%s", found.Knowledge)
	}
}

// In scripts without blanks a question finds an entry by some characters of its sentences, as
// the index does, and the same rule holds: a long text needs more in common.
func TestRecallOfUnspacedScripts(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.write(threadWriter("one"), entries.Constraint, "サーバーの場所", "東京のサーバーは使わない。PostgreSQLは大阪にある。猫もいる。")
	s.write(threadWriter("one"), entries.Decision, "日志", "我们把所有日志写入数据库")
	s.write(threadWriter("one"), entries.Discovery, "db", "เราใช้ฐานข้อมูลเดียวสำหรับทุกบริการ")
	long := strings.Repeat("決済の結果を画面に表示し、在庫を確認して注文を確定する。", 3)
	for question, want := range map[string]string{
		"東京": "サーバーの場所", "サーバー": "サーバーの場所", "大阪のpostgresql": "サーバーの場所", "猫": "サーバーの場所",
		"数据库": "日志", "ฐานข้อมูล": "db", "天気": "", long: "",
	} {
		titles := ""
		for _, e := range s.recall(question).Entries {
			titles += e.Title
		}
		if titles != want {
			t.Errorf("%s: %q, want %q", question, titles, want)
		}
	}
}

// With vectors, the writer is told of what means nearly the same whatever its words, and both are
// kept, for opposites are as near; entries that mean something else are not recalled.
func TestVectors(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Embed = func(_ context.Context, text string) (memory.Embedded, error) {
		v := []float32{0, 0, 1}
		if strings.Contains(text, "slow") || strings.Contains(text, "takes long") {
			v = []float32{1, 0.1, 0}
		}
		return memory.Embedded{Model: "m", Vector: v}, nil
	}
	a := s.write(threadWriter("one"), entries.Discovery, "Tests", "the suite is slow since every case starts a server")
	if w := s.write(threadWriter("two"), entries.Discovery, "Suite", "each case launches servers, so that running all takes long"); w.Folded || w.Near != a.Key {
		t.Errorf("%+v", w)
	}
	s.write(threadWriter("one"), entries.Discovery, "Weather", "it rains on mondays")
	if found := s.recall("why it takes long"); found.Count != 2 || strings.Contains(found.Knowledge, "rains") || found.How == "text" {
		t.Errorf("%+v", found)
	}
	s.Embed = func(context.Context, string) (memory.Embedded, error) { return memory.Embedded{}, errors.New("401") }
	if w := s.write(threadWriter("one"), entries.Constraint, "Key", "the endpoint wants another key"); w.Key == "" || !strings.Contains(w.Note, "words alone") {
		t.Errorf("%+v", w)
	}
	if found := s.recall("endpoint key"); found.Count != 1 || !strings.Contains(found.Note, "words alone") {
		t.Errorf("%+v", found)
	}
}

func TestRecallLeavesOut(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	chain := threadWriter("b")
	chain.ChainRoot = "a"
	s.write(threadWriter("a"), entries.Decision, "Queue one", "the queue is kept in SQLite as plan alpha says")
	s.write(chain, entries.Workaround, "Queue two", "the queue is polled because plan beta fails")
	s.write(person(), entries.Constraint, "Queue three", "the queue holds at most ten thousand jobs by plan gamma")
	for _, tt := range []struct {
		name string
		q    entries.Question
		want []string
	}{
		{"nobody asks", entries.Question{}, []string{"Queue one", "Queue three", "Queue two"}},
		{"a thread of the chain", entries.Question{Thread: "b", ChainRoot: "a"}, []string{"Queue three"}},
		{"kinds", entries.Question{Kinds: []entries.Kind{entries.Workaround, entries.Constraint}}, []string{"Queue three", "Queue two"}},
		{"limit", entries.Question{Kinds: []entries.Kind{entries.Constraint}, Limit: 1}, []string{"Queue three"}},
	} {
		tt.q.Text = "queue plan"
		found, err := s.Recall(t.Context(), tt.q)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range found.Entries {
			got = append(got, e.Title)
		}
		slices.Sort(got)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
	_, err := s.Recall(t.Context(), entries.Question{Text: "x", Kinds: []entries.Kind{"rumour"}})
	refused(t, err, tool.CodeBadArguments)
}

func TestSupersede(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	a := s.write(threadWriter("one"), entries.Decision, "Cache A", "the cache holds results for one hour in memory")
	b := s.write(threadWriter("two"), entries.Decision, "Cache B", "the cache holds results for a day on disk", a.Key)
	c := s.write(threadWriter("three"), entries.Decision, "Cache C", "there is no cache of results any more", b.Key)
	if got := s.titles(); !slices.Equal(got, []string{"Cache C", "+Cache B", "+Cache A"}) {
		t.Fatalf("%q", got)
	}
	if found := s.recall("cache results"); found.Count != 1 || found.Entries[0].Key != c.Key {
		t.Errorf("%+v", found)
	}
	_, err := s.Write(t.Context(), threadWriter("four"), entries.New{Kind: entries.Decision, Title: "D", Text: "cache again", Supersedes: []string{a.Key}})
	if said := refused(t, err, tool.CodeConflict); !strings.Contains(said, b.Key) {
		t.Error(said)
	}
	_, err = s.Write(t.Context(), threadWriter("four"), entries.New{Kind: entries.Decision, Title: "D", Text: "cache again", Supersedes: []string{"0123456789abcdef"}})
	refused(t, err, tool.CodeNotFound)
	// History can be said again.
	if w := s.write(threadWriter("five"), entries.Decision, "Cache A", "the cache holds results for one hour in memory", c.Key); w.Folded || w.Key == a.Key {
		t.Errorf("%+v", w)
	}
}

// TestSupersedeNearlyTheSame: an entry that takes the place of one with nearly or just its words
// is another one; that stays as history, and holds again when the new one is forgotten.
func TestSupersedeNearlyTheSame(t *testing.T) {
	t.Parallel()
	const text = "The server clock offset is -5 hours"
	for name, now := range map[string]string{"a sign": "The server clock offset is 5 hours", "case": strings.ToLower(text), "nothing": text} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			old := s.write(person(), entries.Constraint, "Timezone", text)
			w := s.write(person(), entries.Constraint, "Timezone", now, old.Key)
			if w.Key == old.Key || !slices.Equal(w.Superseded, []string{old.Key}) {
				t.Fatalf("%+v", w)
			}
			if e, err := s.Get(t.Context(), old.Key); err != nil || e.Text != text || e.SupersededBy != w.Key || len(e.Supersedes) != 0 {
				t.Errorf("%+v %v", e, err)
			}
			if gone, err := s.Forget(t.Context(), person(), w.Key); err != nil || !slices.Equal(gone.Revived, []string{old.Key}) {
				t.Errorf("%+v %v", gone, err)
			}
			if e, err := s.Get(t.Context(), old.Key); err != nil || e.Text != text || !e.Current() {
				t.Errorf("%+v %v", e, err)
			}
		})
	}
}

// Forgetting what took the place of others brings those back, and closes the gap in a
// chain.
func TestForgetRevives(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	a := s.write(threadWriter("one"), entries.Decision, "A", "the first form of the plan is a table")
	b := s.write(threadWriter("one"), entries.Decision, "B", "the second form is a tree of nodes", a.Key)
	c := s.write(threadWriter("one"), entries.Decision, "C", "third form, a graph with weights", b.Key)
	if _, err := s.Forget(t.Context(), threadWriter("one"), b.Key); err != nil {
		t.Fatal(err)
	}
	if got := s.titles(); !slices.Equal(got, []string{"C", "+A"}) {
		t.Fatalf("%q", got)
	}
	gone, err := s.Forget(t.Context(), person(), c.Key)
	if err != nil || !slices.Equal(gone.Revived, []string{a.Key}) {
		t.Fatalf("%+v %v", gone, err)
	}
	if got := s.titles(); !slices.Equal(got, []string{"A"}) {
		t.Errorf("%q", got)
	}
}

func TestForgetThread(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	shared := s.write(threadWriter("one"), entries.Discovery, "Shared", "the linter needs a config file in the root")
	s.write(threadWriter("two"), entries.Discovery, "Shared", "the linter needs a config file in the root")
	s.write(threadWriter("one"), entries.Discovery, "Alone", "tests of the parser take nine minutes")
	s.write(person(), entries.Preference, "Of a person", "answers are short and in plain words")
	count := func(ids ...thread.ID) int {
		t.Helper()
		n, err := s.OfThreads(t.Context(), ids)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if one, two, both := count("one"), count("two"), count("one", "two"); one != 2 || two != 1 || both != 2 {
		t.Errorf("%d, %d and together %d", one, two, both)
	}
	for range 2 { // it can be repeated
		if err := s.ForgetThread(t.Context(), "one"); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.titles(); !slices.Equal(got, []string{"Of a person", "Shared"}) {
		t.Fatalf("%q", got)
	}
	if e, err := s.Get(t.Context(), shared.Key); err != nil || len(e.Origins) != 1 || e.Writer().Thread != "two" {
		t.Errorf("%+v %v", e, err)
	}
	if err := s.ForgetThread(t.Context(), "two"); err != nil {
		t.Fatal(err)
	}
	if got := s.titles(); !slices.Equal(got, []string{"Of a person"}) || count("one", "two") != 0 {
		t.Errorf("%q", got)
	}
}

func TestIndexThread(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	state, text := thread.Completed, "outputs\nschema: games(id uuid)\n"+strings.Repeat("long ", 2000)
	s.Returned = func(_ context.Context, id thread.ID) (memory.Returned, error) {
		return memory.Returned{Writer: threadWriter(string(id)), State: state, Text: text}, nil
	}
	first, err := s.IndexThread(t.Context(), threadWriter("one"), "one")
	if err != nil {
		t.Fatal(err)
	}
	text = "schema: games(id bigint)"
	if again, err := s.IndexThread(t.Context(), threadWriter("one"), "one"); err != nil || again.Key != first.Key {
		t.Fatalf("%+v %v", again, err)
	}
	if found := s.recall("schema of games"); found.Count != 1 || found.Entries[0].Text != text || found.Entries[0].Kind != entries.Result {
		t.Errorf("%+v", found)
	}
	if _, err := s.IndexThread(t.Context(), threadWriter("one"), "one.below"); err != nil {
		t.Error(err)
	}
	_, err = s.IndexThread(t.Context(), threadWriter("one"), "two")
	refused(t, err, tool.CodePermissionDenied)
	state = thread.Error
	if w, err := s.IndexThread(t.Context(), person(), "three"); err != nil || w.Key != "" || !strings.Contains(w.Note, "completed") {
		t.Errorf("%+v %v", w, err)
	}
	_, err = s.Write(t.Context(), client(), entries.New{Kind: entries.Result, Title: "T", Text: "x"})
	refused(t, err, tool.CodeBadArguments)
}

func TestEdit(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	w := s.write(threadWriter("one"), entries.Discovery, "Port", "the service listens on port 8080")
	text := "the service listens on port 9090 with key " + "ghp_" + strings.Repeat("a", 36)
	edited, err := s.Edit(t.Context(), w.Key, memory.Change{Text: &text})
	if err != nil || edited.Removed != 1 {
		t.Fatalf("%+v %v", edited, err)
	}
	e, err := s.Get(t.Context(), w.Key[:6])
	if err != nil || !strings.Contains(e.Text, "9090") || strings.Contains(e.Text, "ghp_") || e.EditedAt.IsZero() || e.Writer().Thread != "one" {
		t.Errorf("%+v %v", e, err)
	}
	// The first text can be written again: the key that it would have is taken.
	if again := s.write(threadWriter("two"), entries.Discovery, "Port", "the service listens on port 8080"); again.Key == w.Key || again.Folded {
		t.Errorf("%+v", again)
	}
	if found := s.recall("port 9090"); found.Count == 0 || found.Entries[0].Key != w.Key {
		t.Errorf("%+v", found)
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for name, n := range map[string]entries.New{
		"ten megabytes": {Kind: entries.Decision, Title: "T", Text: strings.Repeat("x", 10<<20)},
		"long text":     {Kind: entries.Decision, Title: "T", Text: strings.Repeat("é", memory.MaxText+1)},
		"long title":    {Kind: entries.Decision, Title: strings.Repeat("é", memory.MaxTitle+1), Text: "x"},
		"no title":      {Kind: entries.Decision, Title: " \n\u200b", Text: "x"},
		"no text":       {Kind: entries.Decision, Title: "T", Text: "\x00 \u202e"},
		"no kind":       {Title: "T", Text: "x"},
		"a kind's end":  {Kind: "decision\"><b", Title: "T", Text: "x"},
		"many keys":     {Kind: entries.Decision, Title: "T", Text: "x", Supersedes: make([]string, 21)},
	} {
		_, err := s.Write(t.Context(), client(), n)
		if f, ok := errors.AsType[*tool.Fault](err); !ok || f.Code != tool.CodeBadArguments || len(f.Message) > 300 {
			t.Errorf("%s: %v", name, err)
		}
	}
	largest := strings.Repeat("𝕏", memory.MaxText) // four bytes each
	w := s.write(threadWriter(strings.Repeat("i", 120)), entries.Decision, strings.Repeat("𝕏", memory.MaxTitle), largest)
	for i := range 9 { // and as many who say it as are kept
		s.write(threadWriter(fmt.Sprint(i, strings.Repeat("i", 120))), entries.Decision, strings.Repeat("𝕏", memory.MaxTitle), largest)
	}
	if e, err := s.Get(t.Context(), w.Key); err != nil || e.Text != largest || len(e.Origins) != 8 {
		t.Errorf("%v %d", err, len(e.Origins))
	}
}

// A thread that writes without end is stopped.
func TestEntriesOfAThreadAreBounded(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	rows := make([]rag.Row, 199)
	for i := range rows {
		rows[i] = rag.Row{Namespace: memory.Namespace, Key: fmt.Sprint(i), Project: "here", ThreadID: "one", Text: fmt.Sprint(i), CreatedAt: s.now}
	}
	s.put(rows...)
	s.write(threadWriter("one"), entries.Discovery, "Last", "for this one there is room")
	_, err := s.Write(t.Context(), threadWriter("one"), entries.New{Kind: entries.Discovery, Title: "More", Text: "there is none for another"})
	refused(t, err, tool.CodeUnsupported)
	s.write(threadWriter("two"), entries.Discovery, "Another", "another thread still writes")
}

// The budget holds whatever is recalled, and one long entry does not take all of it.
func TestBudget(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		budget := rapid.IntRange(50, 1500).Draw(rt, "budget")
		lengths := rapid.SliceOfN(rapid.IntRange(1, memory.MaxText/5), 1, 6).Draw(rt, "lengths")
		var all []entries.Entry
		for i, n := range lengths {
			all = append(all, entries.Entry{
				Key: fmt.Sprint(i), Kind: entries.Decision, Title: "T", Text: strings.Repeat("<b> ", n)[:n],
				Origins: []entries.Origin{{By: entries.ByPerson}},
			})
		}
		knowledge, count := memory.Fenced(all, budget)
		if tokens := (len([]rune(knowledge)) + 3) / 4; tokens > budget {
			rt.Fatalf("%d tokens of %d", tokens, budget)
		}
		if count != strings.Count(knowledge, "</knowledge>") {
			rt.Fatalf("%d entries are said to be in\n%s", count, knowledge)
		}
		if len(all) > 1 && budget > 300 && count < 2 {
			rt.Fatalf("the first takes all of %d tokens:\n%s", budget, knowledge)
		}
	})
}

// Clock jumps change nothing about what is there and what is recalled.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	a := s.write(threadWriter("one"), entries.Decision, "Before", "the build runs on two cores")
	s.now = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)
	b := s.write(threadWriter("two"), entries.Decision, "After", "the build runs on one core only", a.Key)
	s.now = time.Date(2990, 1, 1, 0, 0, 0, 0, time.UTC)
	if found := s.recall("build cores"); found.Count != 1 || found.Entries[0].Key != b.Key {
		t.Errorf("%+v", found)
	}
	if page, err := s.Export(t.Context(), nil); err != nil || len(page.Entries) != 2 {
		t.Errorf("%+v %v", page, err)
	}
}

// returns is what one thread returned.
func returns(id, text string) func(context.Context, thread.ID) (memory.Returned, error) {
	return func(context.Context, thread.ID) (memory.Returned, error) {
		return memory.Returned{Writer: threadWriter(id), State: thread.Completed, Text: text}, nil
	}
}

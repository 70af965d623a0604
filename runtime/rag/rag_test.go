package rag_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/rag"
)

// library is a small index.
func library(t testing.TB) *rag.Index {
	t.Helper()
	x := open(t, pathIn(t.TempDir()))
	store(t, x,
		row("uuid", "We chose a UUID for game_id, since clients make ids offline.", 1, 0, 0),
		row("limit", "The API limits requests to 100 a minute; back off on 429.", 0, 1, 0),
		row("rls", "RLS policies require auth.uid() in every query.", 0.8, 0.6, 0),
		row("notify", "pg_notify replaces webhooks, which lose events."))
	return x
}

func TestQuery(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		query func(*rag.Query)
		want  string
		by    rag.Method
	}{
		"words":                   {func(q *rag.Query) { q.Text = "uuid" }, "uuid", rag.ByText},
		"words of anything":       {func(q *rag.Query) { q.Text = `AND "RLS* policies( -- pg_notify` }, "notify rls", rag.ByText},
		"a vector":                {func(q *rag.Query) { q.Vector, q.Model = []float32{1, 0, 0}, "m" }, "uuid rls", rag.ByVectors},
		"a vector and its length": {func(q *rag.Query) { q.Vector, q.Model = []float32{1e30, 0, 0}, "m" }, "uuid rls", rag.ByVectors},
		"the floor":               {func(q *rag.Query) { q.Vector, q.Model, q.MinFloor = []float32{1, 0, 0}, "m", 0.9 }, "uuid", rag.ByVectors},
		"the ratio":               {func(q *rag.Query) { q.Vector, q.Model, q.ScoreRatio = []float32{1, 0, 0}, "m", 0.9 }, "uuid", rag.ByVectors},
		"both":                    {func(q *rag.Query) { q.Text, q.Vector, q.Model = "RLS", []float32{1, 0, 0}, "m" }, "rls uuid", rag.ByBoth},
		"words far from the vector": {
			func(q *rag.Query) { q.Text, q.Vector, q.Model = "limits", []float32{1, 0, 0}, "m" }, "uuid rls", rag.ByBoth,
		},
		"a row without a vector":   {func(q *rag.Query) { q.Text, q.Vector, q.Model = "webhooks", []float32{1, 0, 0}, "m" }, "uuid notify rls", rag.ByBoth},
		"another model":            {func(q *rag.Query) { q.Vector, q.Model = []float32{1, 0, 0}, "other" }, "", rag.ByVectors},
		"another dimension":        {func(q *rag.Query) { q.Vector, q.Model = []float32{1, 0}, "m" }, "", rag.ByVectors},
		"nothing":                  {func(q *rag.Query) { q.Text = " -- " }, "", rag.ByNothing},
		"another namespace":        {func(q *rag.Query) { q.Text, q.Namespace = "uuid", "other" }, "", rag.ByText},
		"another project":          {func(q *rag.Query) { q.Text, q.Project = "uuid", "other" }, "", rag.ByText},
		"all projects":             {func(q *rag.Query) { q.Text, q.Project = "uuid", rag.AllProjects }, "uuid", rag.ByText},
		"a limit":                  {func(q *rag.Query) { q.Vector, q.Model, q.Limit = []float32{1, 0, 0}, "m", 1 }, "uuid", rag.ByVectors},
		"the words of other cases": {func(q *rag.Query) { q.Text = "ÜUID Uuid" }, "uuid", rag.ByText},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := ask("")
			tt.query(&q)
			answer := find(t, library(t), q)
			if keys(answer) != tt.want || answer.By != tt.by {
				t.Errorf("found %q by %s, want %q by %s: %s", keys(answer), answer.By, tt.want, tt.by, show(answer))
			}
		})
	}
}

// An answer says what could not be compared.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	x := library(t)
	other := row("other", "Of another model.", 1, 0)
	other.Model = "n"
	store(t, x, other)
	answer := find(t, x, ask("", 1, 0, 0))
	if answer.Rows != 5 || answer.OtherModel != 1 || answer.NoVector != 1 {
		t.Errorf("%s", show(answer))
	}
	answer = find(t, x, ask("uuid"))
	if answer.OtherModel != 0 || answer.NoVector != 0 {
		t.Errorf("nothing is compared: %s", show(answer))
	}
}

func TestExcluded(t *testing.T) {
	t.Parallel()
	x := open(t, pathIn(t.TempDir()))
	for _, from := range [][3]string{{"a", "t1", "t1"}, {"b", "t2", "t1"}, {"c", "t3", "t3"}, {"d", "", ""}} {
		r := row(from[0], "common words")
		r.ThreadID, r.ChainRoot = from[1], from[2]
		store(t, x, r)
	}
	for name, tt := range map[string]struct{ thread, chain, want string }{
		"nothing":                    {"", "", "a b c d"},
		"a thread and its chain":     {"t2", "", "c d"},
		"the root and its chain":     {"t1", "", "c d"},
		"a chain of a new thread":    {"t9", "t1", "c d"},
		"a thread of no row":         {"t9", "", "a b c d"},
		"what another thread knows":  {"t3", "", "a b d"},
		"a hostile id of thread":     {"' OR 1=1 --", "", "a b c d"},
		"a thread, by another chain": {"t2", "t3", "a d"},
	} {
		q := ask("common")
		q.ExcludeThread, q.ExcludeChain = tt.thread, tt.chain
		if answer := find(t, x, q); keys(answer) != tt.want {
			t.Errorf("without %s: %q, want %q", name, keys(answer), tt.want)
		}
	}
}

func TestWhere(t *testing.T) {
	t.Parallel()
	x := open(t, pathIn(t.TempDir()))
	for key, metadata := range map[string]string{
		"a": `{"kind":"decision","state":"current"}`, "b": `{"kind":"decision","state":"old"}`, "c": `{"kind":"discovery"}`, "d": ``,
	} {
		r := row(key, "common words", 1, 0)
		r.Metadata = json.RawMessage(metadata)
		store(t, x, r)
	}
	for name, tt := range map[string]struct {
		where rag.Where
		want  string
	}{
		"all":         {rag.Where{}, "a b c d"},
		"a kind":      {rag.Where{"kind": {"decision"}}, "a b"},
		"kinds":       {rag.Where{"kind": {"decision", "discovery"}}, "a b c"},
		"a field":     {rag.Where{"state": {"current"}}, "a"},
		"both":        {rag.Where{"kind": {"discovery"}, "state": {"old"}}, ""},
		"hostile one": {rag.Where{"kind": {`"]') OR 1=1 --`}}, ""},
	} {
		for _, q := range []rag.Query{ask("common"), ask("", 1, 0), ask("common", 1, 0)} {
			q.Where = tt.where
			if answer := find(t, x, q); keys(answer) != tt.want {
				t.Errorf("%s, by %s: %q, want %q", name, answer.By, keys(answer), tt.want)
			}
		}
	}
	q := ask("common")
	q.Where = rag.Where{`a"b`: {"x"}}
	if _, err := x.Query(t.Context(), q); !isRefusal(err, "where") {
		t.Errorf("a hostile field: %v", err)
	}
}

func isRefusal(err error, field string) bool {
	refusal, ok := errors.AsType[*rag.InputError](err)
	return ok && refusal.Field == field && refusal.Reason != ""
}

// A value that has no meaning is refused with what is valid, and nothing of the call is stored.
func TestRefusedRows(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*rag.Row)
		field  string
	}{
		"no namespace":        {func(r *rag.Row) { r.Namespace = "" }, "namespace"},
		"a long namespace":    {func(r *rag.Row) { r.Namespace = strings.Repeat("n", 1000) }, "namespace"},
		"lines in a name":     {func(r *rag.Row) { r.Namespace = "a\nb" }, "namespace"},
		"no key":              {func(r *rag.Row) { r.Key = "" }, "key"},
		"no UTF-8":            {func(r *rag.Row) { r.Key = "\xff" }, "key"},
		"all projects":        {func(r *rag.Row) { r.Project = "*" }, "project"},
		"no text":             {func(r *rag.Row) { r.Text = " \n" }, "text"},
		"10 MB":               {func(r *rag.Row) { r.Text = strings.Repeat("0123456789", 1<<20) }, "text"},
		"text that is binary": {func(r *rag.Row) { r.Text = "a\x00b" }, "text"},
		"text of no UTF-8":    {func(r *rag.Row) { r.Text = "a\xffb" }, "text"},
		"metadata of a list":  {func(r *rag.Row) { r.Metadata = json.RawMessage(`[]`) }, "metadata"},
		"metadata of nothing": {func(r *rag.Row) { r.Metadata = json.RawMessage(`null`) }, "metadata"},
		"broken metadata":     {func(r *rag.Row) { r.Metadata = json.RawMessage(`{`) }, "metadata"},
		"much metadata":       {func(r *rag.Row) { r.Metadata = json.RawMessage(`{"a":"` + strings.Repeat("x", 1<<20) + `"}`) }, "metadata"},
		"NaN":                 {func(r *rag.Row) { r.Vector[1] = float32(math.NaN()) }, "vector"},
		"infinity":            {func(r *rag.Row) { r.Vector[1] = float32(math.Inf(-1)) }, "vector"},
		"zeros":               {func(r *rag.Row) { r.Vector = make([]float32, 3) }, "vector"},
		"a long vector":       {func(r *rag.Row) { r.Vector = make([]float32, 10_000) }, "vector"},
		"another dimension":   {func(r *rag.Row) { r.Dimension = 4 }, "dimension"},
		"no model":            {func(r *rag.Row) { r.Model = "" }, "model"},
		"no time":             {func(r *rag.Row) { r.CreatedAt = r.CreatedAt.AddDate(-3000, 0, 0) }, "created_at"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := pathIn(t.TempDir())
			x := open(t, path)
			r := row("bad", "text", 1, 2, 3)
			tt.change(&r)
			_, err := x.Store(t.Context(), []rag.Row{row("good", "text"), r})
			if !isRefusal(err, tt.field) || len(err.Error()) > 400 {
				t.Errorf("%v", err)
			}
			if _, err := os.Lstat(filepath.Dir(path)); !errors.Is(err, os.ErrNotExist) {
				t.Error("a file was made for what is refused")
			}
		})
	}
}

func TestRefusedQueries(t *testing.T) {
	t.Parallel()
	for field, change := range map[string]func(*rag.Query){
		"namespace":   func(q *rag.Query) { q.Namespace = "" },
		"limit":       func(q *rag.Query) { q.Limit = 1 << 20 },
		"min_floor":   func(q *rag.Query) { q.MinFloor = math.NaN() },
		"score_ratio": func(q *rag.Query) { q.ScoreRatio = 1.5 },
		"max_tokens":  func(q *rag.Query) { q.MaxTokens = -1 },
		"vector":      func(q *rag.Query) { q.Vector, q.Model = []float32{float32(math.NaN())}, "m" },
		"model":       func(q *rag.Query) { q.Vector = []float32{1} },
	} {
		q := ask("text")
		change(&q)
		if _, err := open(t, pathIn(t.TempDir())).Query(t.Context(), q); !isRefusal(err, field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// A key is of one namespace and project; storing it again replaces the row.
func TestReplaced(t *testing.T) {
	t.Parallel()
	x := library(t)
	elsewhere := row("uuid", "A UUID of another project.")
	elsewhere.Project = "q"
	done, err := x.Store(t.Context(), []rag.Row{row("uuid", "We chose integers."), elsewhere})
	if err != nil || done != (rag.Stored{Added: 1, Replaced: 1}) {
		t.Fatalf("%+v, %v", done, err)
	}
	if answer := find(t, x, ask("uuid")); keys(answer) != "" {
		t.Errorf("the former text is found: %s", show(answer))
	}
	if answer := find(t, x, ask("integers")); keys(answer) != "uuid" {
		t.Errorf("the new one is not: %s", show(answer))
	}
	if answer := find(t, x, ask("", 1, 0, 0)); keys(answer) != "rls" {
		t.Errorf("the vector of the former text is found: %s", show(answer))
	}
}

// A row of the same text keeps its vector: only what is said of it has changed.
func TestVectorKept(t *testing.T) {
	t.Parallel()
	x := library(t)
	r := row("uuid", "We chose a UUID for game_id, since clients make ids offline.")
	r.Metadata = json.RawMessage(`{"state":"superseded"}`)
	store(t, x, r)
	answer := find(t, x, ask("", 1, 0, 0))
	if keys(answer) != "uuid rls" || string(answer.Hits[0].Metadata) != `{"state":"superseded"}` {
		t.Errorf("%s", show(answer))
	}
}

// TestNothingIsMade: who only looks makes no file.
func TestNothingIsMade(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x := open(t, pathIn(dir))
	answer := find(t, x, ask("uuid", 1, 0, 0))
	status, err := x.Status(t.Context())
	stale, errStale := x.Stale(t.Context(), rag.Want{Namespace: "ns", Model: "m"}, 0, 10)
	listed, errList := x.List(t.Context(), rag.Listing{Namespace: "ns"})
	deleted, errDelete := x.Delete(t.Context(), rag.Deletion{Namespace: "ns", All: true})
	set, errSet := x.SetVectors(t.Context(), "m", []rag.Embedded{{ID: 1, Vector: []float32{1}}})
	if err := errors.Join(err, errStale, errList, errDelete, errSet); err != nil {
		t.Fatal(err)
	}
	if len(answer.Hits)+len(status.Namespaces)+len(stale)+len(listed)+deleted+set != 0 || answer.By != rag.ByBoth || status.Path != "" {
		t.Errorf("%s %s", show(answer), show(status))
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("there are %v, %v", left, err)
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		deletion rag.Deletion
		want     string // keys that are left
	}{
		"keys":                {rag.Deletion{Namespace: "ns", Project: "p", Keys: []string{"a", "x"}}, "b c d"},
		"a thread":            {rag.Deletion{Project: rag.AllProjects, ThreadIDs: []string{"t", "u"}}, "a c"},
		"a thread's keys":     {rag.Deletion{Namespace: "ns", Project: "p", ThreadIDs: []string{"t"}, Keys: []string{"a", "b"}}, "a c d"},
		"a project":           {rag.Deletion{Namespace: "ns", Project: "q", All: true}, "a b"},
		"a namespace":         {rag.Deletion{Namespace: "ns", Project: rag.AllProjects, All: true}, ""},
		"another namespace":   {rag.Deletion{Namespace: "no", Project: rag.AllProjects, All: true}, "a b c d"},
		"the keys of another": {rag.Deletion{Namespace: "ns", Project: "q", Keys: []string{"a"}}, "a b c d"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := open(t, pathIn(t.TempDir()))
			for _, of := range [][3]string{{"a", "p", ""}, {"b", "p", "t"}, {"c", "q", ""}, {"d", "q", "t"}} {
				r := row(of[0], "common", 1, 2)
				r.Project, r.ThreadID = of[1], of[2]
				store(t, x, r)
			}
			deleted, err := x.Delete(t.Context(), tt.deletion)
			if err != nil || deleted != 4-len(strings.Fields(tt.want)) {
				t.Errorf("%d deleted, %v", deleted, err)
			}
			for _, q := range []rag.Query{ask("common"), ask("", 1, 2)} {
				q.Project = rag.AllProjects
				if answer := find(t, x, q); keys(answer) != tt.want || answer.Rows != len(answer.Hits) {
					t.Errorf("left by %s: %s", answer.By, show(answer))
				}
			}
		})
	}
}

func TestRefusedDeletions(t *testing.T) {
	t.Parallel()
	x := library(t)
	for field, d := range map[string]rag.Deletion{
		"keys":      {Namespace: "ns", Project: "p"},
		"namespace": {Project: "p", All: true},
		"project":   {Namespace: "ns", Project: "\x00", All: true},
	} {
		if _, err := x.Delete(t.Context(), d); !isRefusal(err, field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// Rows are embedded again batch by batch; one that has another text by then is left to the
// next batch.
func TestReindex(t *testing.T) {
	t.Parallel()
	x := library(t)
	want := rag.Want{Namespace: "ns", Model: "new", Dimension: 2}
	var after int64
	var seen []string
	for range 4 {
		stale, err := x.Stale(t.Context(), want, after, 2)
		if err != nil {
			t.Fatal(err)
		}
		var vectors []rag.Embedded
		for _, r := range stale {
			vectors = append(vectors, rag.Embedded{ID: r.ID, Vector: []float32{1, float32(len(r.Text))}})
			after = r.ID
			seen = append(seen, r.Key)
		}
		if len(seen) == 2 { // somebody stores one anew while it is embedded
			store(t, x, row("uuid", "Another text."))
		}
		set, err := x.SetVectors(t.Context(), want.Model, vectors)
		if err != nil || len(seen) == 2 && set != 1 {
			t.Fatalf("%d set, %v", set, err)
		}
	}
	if got := strings.Join(seen, " "); got != "uuid limit rls notify uuid" {
		t.Errorf("embedded %s", got)
	}
	stale, err := x.Stale(t.Context(), want, 0, 10)
	if err != nil || len(stale) != 0 {
		t.Errorf("left %+v, %v", stale, err)
	}
	q := ask("", 1, 50)
	q.Model = "new"
	if answer := find(t, x, q); len(answer.Hits) != 4 || answer.OtherModel+answer.NoVector != 0 {
		t.Errorf("%s", show(answer))
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	x := library(t)
	other := row("other", "four", 1, 0)
	other.Model, other.Project = "n", "q"
	store(t, x, other)
	status, err := x.Status(t.Context())
	if err != nil || len(status.Namespaces) != 1 || status.Bytes == 0 || status.Path == "" {
		t.Fatalf("%s, %v", show(status), err)
	}
	n := status.Namespaces[0]
	if n.Name != "ns" || n.Rows != 5 || n.Projects != 2 || n.NoVector != 1 || n.Stale("m", 3) != 2 || n.Stale("m", 0) != 2 ||
		n.Stale("m", 4) != 5 || show(n.Models) != `[{"Name":"m","Dimension":3,"Rows":3},{"Name":"n","Dimension":2,"Rows":1}]` {
		t.Errorf("%s", show(n))
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	x := library(t)
	page, err := x.List(t.Context(), rag.Listing{Namespace: "ns", Project: "p", Limit: 3})
	if err != nil || len(page) != 3 || page[0].Key != "notify" || page[2].Key != "limit" || page[2].Model != "m" || page[2].Dimension != 3 {
		t.Fatalf("%s, %v", show(page), err)
	}
	rest, err := x.List(t.Context(), rag.Listing{Namespace: "ns", Project: "p", Limit: 3, After: page[2].ID})
	if err != nil || len(rest) != 1 || rest[0].Key != "uuid" {
		t.Fatalf("%s, %v", show(rest), err)
	}
	store(t, x, rest[0].Row) // as it was listed
	if answer := find(t, x, ask("", 1, 0, 0)); keys(answer) != "uuid rls" {
		t.Errorf("it has lost its vector: %s", show(answer))
	}
}

// A file that was deleted while it is open is gone; the next row makes another.
func TestDeletedFile(t *testing.T) {
	t.Parallel()
	path := pathIn(t.TempDir())
	x := open(t, path)
	store(t, x, row("a", "common"))
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	if answer := find(t, x, ask("common")); len(answer.Hits) != 0 {
		t.Errorf("%s", show(answer))
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Error("to look has made it again")
	}
	store(t, x, row("b", "common"))
	if answer := find(t, x, ask("common")); keys(answer) != "b" {
		t.Errorf("%s", show(answer))
	}
}

// Deleted rows are not in the files any more after these were made smaller.
func TestCompact(t *testing.T) {
	t.Parallel()
	path := pathIn(t.TempDir())
	x := open(t, path)
	var rows []rag.Row
	for i := range 200 {
		rows = append(rows, row(fmt.Sprint(i), "confidential "+strings.Repeat(fmt.Sprint("w", i, " "), 200)))
	}
	store(t, x, rows...)
	if _, err := x.Delete(t.Context(), rag.Deletion{Namespace: "ns", Project: "p", All: true}); err != nil {
		t.Fatal(err)
	}
	done, err := x.Compact(t.Context())
	if err != nil || done.Kept != "" || done.After*4 > done.Before {
		t.Fatalf("%+v, %v", done, err)
	}
	for _, ending := range []string{"", "-wal"} {
		if content, err := os.ReadFile(path + ending); err != nil || strings.Contains(string(content), "confidential") {
			t.Errorf("%s has it still, %v", path+ending, err)
		}
	}
}

// Of a script without blanks a part of a sentence is found, in an index of an older version
// too.
func TestScriptsWithoutBlanks(t *testing.T) {
	t.Parallel()
	path := pathIn(t.TempDir())
	x := open(t, path)
	store(t, x,
		row("ja", "本番環境のサーバーはNode20で動く。新しい版は使えない。"), row("zh", "我们选择了全文搜索引擎。", 1, 0, 0),
		row("th", "เซิร์ฟเวอร์ใช้ฐานข้อมูลเดียว"), row("ko", "서버는 하나뿐이다."), row("en", "One server."))
	look := func(x *rag.Index) {
		t.Helper()
		for text, want := range map[string]string{
			"本番サーバーの設定": "ja", "node20": "ja", "搜索": "zh", "版": "ja", "ฐานข้อมูล": "th", "서버는": "ko", "検疫": "", "server": "en",
		} {
			if answer := find(t, x, ask(text)); keys(answer) != want {
				t.Errorf("%s finds %q, want %q", text, keys(answer), want)
			}
		}
	}
	look(x)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, older := range []string{
		"UPDATE words SET text = (SELECT e.text FROM entries e WHERE e.id = words.rowid), scope = (SELECT 'n' || e.namespace FROM entries e WHERE e.id = words.rowid)",
		"DELETE FROM goose_db_version WHERE version_id = 2",
	} {
		if _, err := db.ExecContext(t.Context(), older); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	x = open(t, path)
	look(x)
	store(t, x, row("ja", "別の話。"))
	if answer := find(t, x, ask("本番")); keys(answer) != "" {
		t.Errorf("a text that was replaced is found: %q", keys(answer))
	}
}

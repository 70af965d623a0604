package rag_test

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/rag"
)

// reference is an index that looks at every row.
type reference struct{ rows []rag.Row }

func (m *reference) store(r rag.Row) {
	at := slices.IndexFunc(m.rows, func(o rag.Row) bool { return o.Namespace == r.Namespace && o.Project == r.Project && o.Key == r.Key })
	if at >= 0 {
		if m.rows[at].Text == r.Text && r.Vector == nil {
			r.Vector, r.Model = m.rows[at].Vector, m.rows[at].Model
		}
		m.rows = slices.Delete(m.rows, at, at+1)
	}
	m.rows = append(m.rows, r)
}

// mayCome reports whether a row is in what a query asks for.
func (m *reference) mayCome(q rag.Query, r rag.Row) bool {
	if q.ExcludeThread != "" && q.ExcludeChain == "" {
		for _, o := range m.rows {
			if o.ThreadID == q.ExcludeThread && o.ChainRoot != "" {
				q.ExcludeChain = o.ChainRoot
			}
		}
	}
	for _, id := range []string{q.ExcludeThread, q.ExcludeChain} {
		if id != "" && (r.ThreadID == id || r.ChainRoot == id) {
			return false
		}
	}
	var metadata struct{ Kind string }
	if err := json.Unmarshal(r.Metadata, &metadata); err != nil {
		return false
	}
	return r.Namespace == q.Namespace && (q.Project == rag.AllProjects || q.Project == r.Project) &&
		(len(q.Where) == 0 || slices.Contains(q.Where["kind"], metadata.Kind))
}

// nearest answers a query for a vector.
func (m *reference) nearest(q rag.Query) (hits []rag.Hit) {
	for _, r := range m.rows {
		if m.mayCome(q, r) && r.Model == q.Model && len(r.Vector) == len(q.Vector) {
			hits = append(hits, rag.Hit{Key: r.Key, Project: r.Project, Score: cosine(q.Vector, r.Vector)})
		}
	}
	slices.SortFunc(hits, func(a, b rag.Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Project, b.Project), cmp.Compare(a.Key, b.Key))
	})
	if len(hits) > 0 {
		best := hits[0].Score
		hits = slices.DeleteFunc(hits, func(h rag.Hit) bool { return h.Score < max(q.MinFloor, best*q.ScoreRatio) })
	}
	return hits[:min(len(hits), q.Limit)]
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

func drawVector(r *rapid.T, dimension int) []float32 {
	v := make([]float32, dimension)
	for i := range v {
		v[i] = float32(rapid.IntRange(-9, 9).Draw(r, "x"))
	}
	v[rapid.IntRange(0, dimension-1).Draw(r, "at")] = 10 // never all zeros
	return v
}

func drawRow(r *rapid.T) rag.Row {
	one := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(r, label) }
	row := rag.Row{
		Namespace: one("namespace", "ns", "other"), Project: one("project", "p", "q"), Key: one("key", "a", "b", "c", "d", "e", "f", "g"),
		Text:     one("text", "red", "green", "blue", "red green") + " " + one("more", "apple", "pear"),
		ThreadID: one("thread", "", "t1", "t2", "t3"), Metadata: json.RawMessage(one("metadata", `{}`, `{"kind":"k"}`, `{"kind":"l"}`)),
		CreatedAt: testTime,
	}
	if row.ThreadID != "" {
		row.ChainRoot = map[string]string{"t1": "t1", "t2": "t1", "t3": "t3"}[row.ThreadID]
	}
	if rapid.IntRange(0, 3).Draw(r, "has a vector") > 0 {
		row.Model = one("model", "m", "n")
		row.Vector = drawVector(r, rapid.IntRange(2, 3).Draw(r, "dimension"))
	}
	return row
}

func drawQuery(r *rapid.T) rag.Query {
	one := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(r, label) }
	q := rag.Query{
		Namespace: one("namespace", "ns", "other", "none"), Project: one("project", "p", "q", "*"), Limit: rapid.IntRange(1, 5).Draw(r, "limit"),
		MinFloor: rapid.Float64Range(-1, 1).Draw(r, "floor"), ScoreRatio: rapid.Float64Range(0, 1).Draw(r, "ratio"),
		ExcludeThread: one("exclude", "", "", "t1", "t2", "t4"), ExcludeChain: one("chain", "", "", "t1", "t3"),
		Model: one("model", "m", "n"), Vector: drawVector(r, rapid.IntRange(2, 3).Draw(r, "dimension")),
	}
	if rapid.Bool().Draw(r, "of kinds") {
		q.Where = rag.Where{"kind": {"k"}}
	}
	return q
}

// history changes an index and the reference alike.
func history(r *rapid.T, t testing.TB, x *rag.Index, m *reference) {
	for range rapid.IntRange(1, 30).Draw(r, "changes") {
		switch rapid.IntRange(0, 9).Draw(r, "change") {
		case 0:
			id := rapid.SampledFrom([]string{"t1", "t2"}).Draw(r, "deleted")
			if _, err := x.Delete(t.Context(), rag.Deletion{Project: rag.AllProjects, ThreadIDs: []string{id}}); err != nil {
				r.Fatal(err)
			}
			m.rows = slices.DeleteFunc(m.rows, func(o rag.Row) bool { return o.ThreadID == id })
		case 1:
			embedSome(r, t, x, m)
		default:
			row := drawRow(r)
			m.store(row)
			if _, err := x.Store(t.Context(), []rag.Row{row}); err != nil {
				r.Fatal(err)
			}
		}
	}
}

// embedSome gives stale rows vectors.
func embedSome(r *rapid.T, t testing.TB, x *rag.Index, m *reference) {
	stale, err := x.Stale(t.Context(), rag.Want{Namespace: "ns", Model: "m", Dimension: 2}, 0, 3)
	if err != nil {
		r.Fatal(err)
	}
	for _, s := range stale {
		v := drawVector(r, 2)
		if set, err := x.SetVectors(t.Context(), "m", []rag.Embedded{{ID: s.ID, Vector: v}}); err != nil || set != 1 {
			r.Fatalf("%d set, %v", set, err)
		}
		for i, o := range m.rows {
			if o.Namespace == "ns" && o.Project == s.Project && o.Key == s.Key {
				m.rows[i].Vector, m.rows[i].Model = v, "m"
			}
		}
	}
}

// A query for a vector answers what looking at every row does, with or without files of
// codes, whatever becomes of those.
func TestAgainstReference(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		path := pathIn(t.TempDir())
		x := rag.New(rag.At(path, mark).WithTests(rapid.SampledFrom([]int{2, 4, 1000}).Draw(r, "size of a chapter"), nil))
		defer x.Close() //nolint:errcheck // the folder goes with the test
		m := &reference{}
		history(r, t, x, m)
		checkChapters(r, path)
		for range 5 {
			damageCodes(r, codesOf(path))
			q := drawQuery(r)
			answer, err := x.Query(t.Context(), q)
			if err != nil {
				r.Fatal(err)
			}
			compareHits(r, answer.Hits, m.nearest(q))
			checkCounts(r, answer, m, q)
		}
	})
}

// codesOf is the folder of the files of codes.
func codesOf(path string) string { return path + ".codes" }

// checkChapters wants each vector to be counted in one chapter, or among those in none, and
// nothing to be left of what was deleted.
func checkChapters(r *rapid.T, path string) {
	if _, err := os.Lstat(path); err != nil {
		return // nothing was stored
	}
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		r.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // it was only read
	for what, query := range map[string]string{
		"chapters that miscount": `SELECT count(*) FROM chapters AS c WHERE live = 0 OR live <> (SELECT count(*) FROM vectors AS v
			WHERE v.namespace = c.namespace AND v.model = c.model AND v.seq > c.after AND v.seq <= c.through)`,
		"spaces that miscount": `SELECT count(*) FROM spaces AS s WHERE live <> (SELECT count(*) FROM vectors AS v
			WHERE v.namespace = s.namespace AND v.model = s.model AND v.seq > s.closed)`,
		"chapters that overlap": `SELECT count(*) FROM chapters AS a JOIN chapters AS b USING (namespace, model)
			WHERE a.through < b.through AND a.through > b.after`,
		"chapters of no space": "SELECT count(*) FROM chapters AS c WHERE NOT EXISTS (SELECT 1 FROM spaces AS s WHERE s.namespace = c.namespace AND s.model = c.model AND s.closed >= c.through)",
		"vectors of no entry":  "SELECT count(*) FROM vectors AS v WHERE NOT EXISTS (SELECT 1 FROM entries AS e WHERE e.id = v.entry AND e.model = v.model AND e.namespace = v.namespace)",
		"entries of no vector": "SELECT count(*) FROM entries WHERE model <> 0 AND id NOT IN (SELECT entry FROM vectors)",
		"words of no entry":    "SELECT count(*) FROM words WHERE rowid NOT IN (SELECT id FROM entries)",
		"entries of no words":  "SELECT count(*) FROM entries WHERE id NOT IN (SELECT rowid FROM words)",
		"empty namespaces":     "SELECT count(*) FROM namespaces WHERE id NOT IN (SELECT namespace FROM entries)",
		"unused models":        "SELECT count(*) FROM models WHERE id NOT IN (SELECT model FROM entries)",
	} {
		var n int
		if err := db.QueryRow(query).Scan(&n); err != nil || n != 0 {
			r.Fatalf("%d %s, %v", n, what, err)
		}
	}
}

// damageCodes does to one of the files of codes, or to all, what crashes, disks and people
// do.
func damageCodes(r *rapid.T, dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.codes"))
	if err != nil {
		r.Fatal(err)
	}
	if len(files) == 0 {
		return
	}
	one := func(label string) string { return files[rapid.IntRange(0, len(files)-1).Draw(r, label)] }
	file := one("damaged file")
	content, err := os.ReadFile(file)
	if err != nil || len(content) == 0 {
		return // it is damaged already
	}
	switch rapid.IntRange(0, 6).Draw(r, "damage") {
	case 0:
		err = os.RemoveAll(dir)
	case 1:
		err = os.Truncate(file, int64(rapid.IntRange(0, len(content)-1).Draw(r, "size")))
	case 2:
		content[rapid.IntRange(0, len(content)-1).Draw(r, "at")] ^= 0x40
		err = os.WriteFile(file, content, 0o600)
	case 3:
		_ = os.Rename(file, one("other file")) // which can be a folder by now
	case 4:
		err = errors.Join(os.Remove(file), os.Mkdir(file, 0o700))
	case 5:
		err = os.WriteFile(file, append(content, content...), 0o600)
	}
	if err != nil {
		r.Fatal(err)
	}
}

// compareHits wants the same rows in the same order, but for scores that differ by what
// float32 rounds.
func compareHits(r *rapid.T, got, want []rag.Hit) {
	const rounding = 1e-6
	name := func(h rag.Hit) string { return fmt.Sprintf("%s/%s %.6f", h.Project, h.Key, h.Score) }
	if len(got) != len(want) {
		if extra := max(len(got), len(want)); extra-min(len(got), len(want)) > 0 && !atLimit(got, want, rounding) {
			r.Fatalf("%s, want %s", show(got), show(want))
		}
		return
	}
	for i := range got {
		if math.Abs(got[i].Score-want[i].Score) > rounding {
			r.Fatalf("hit %d is %s, want %s", i, name(got[i]), name(want[i]))
		}
	}
}

// atLimit reports whether only one answer has a row whose score is that of the limit.
func atLimit(got, want []rag.Hit, rounding float64) bool {
	shorter := min(len(got), len(want))
	if shorter == 0 {
		return len(got)+len(want) == 1
	}
	longer := got
	if len(want) > len(got) {
		longer = want
	}
	last := longer[shorter].Score
	for _, h := range longer[shorter:] {
		if math.Abs(h.Score-last) > rounding {
			return false
		}
	}
	return true
}

func checkCounts(r *rapid.T, a rag.Answer, m *reference, q rag.Query) {
	var rows, other, none int
	for _, row := range m.rows {
		if row.Namespace != q.Namespace || q.Project != rag.AllProjects && q.Project != row.Project {
			continue
		}
		rows++
		switch {
		case row.Vector == nil:
			none++
		case row.Model != q.Model || len(row.Vector) != len(q.Vector):
			other++
		}
	}
	if a.Rows != rows || a.OtherModel != other || a.NoVector != none {
		r.Fatalf("%d rows, %d of other models, %d without a vector; want %d, %d, %d", a.Rows, a.OtherModel, a.NoVector, rows, other, none)
	}
}

// For every query: rows that are excluded or foreign never come, nothing below the floor
// does, and the same query twice has the same answer.
func TestNothingForeignComes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		x := rag.New(rag.At(pathIn(t.TempDir()), mark))
		defer x.Close() //nolint:errcheck // the folder goes with the test
		m := &reference{}
		history(r, t, x, m)
		for range 5 {
			q := drawQuery(r)
			q.Text = rapid.SampledFrom([]string{"red", "green pear", "apple"}).Draw(r, "words")
			if rapid.Bool().Draw(r, "without a vector") {
				q.Vector = nil
			}
			first, err := x.Query(t.Context(), q)
			if err != nil {
				r.Fatal(err)
			}
			second, err := x.Query(t.Context(), q)
			if err != nil || show(first) != show(second) {
				r.Fatalf("%s, and then %s, %v", show(first), show(second), err)
			}
			checkHits(r, m, q, first)
		}
	})
}

func checkHits(r *rapid.T, m *reference, q rag.Query, a rag.Answer) {
	if len(a.Hits) > q.Limit {
		r.Fatalf("%d hits", len(a.Hits))
	}
	for _, h := range a.Hits {
		at := slices.IndexFunc(m.rows, func(o rag.Row) bool { return o.Namespace == q.Namespace && o.Project == h.Project && o.Key == h.Key })
		if at < 0 || !m.mayCome(q, m.rows[at]) || m.rows[at].Text != h.Text {
			r.Fatalf("%s came for %s", show(h), show(q))
		}
		of := m.rows[at]
		if len(q.Vector) > 0 && of.Model == q.Model && len(of.Vector) == len(q.Vector) && cosine(q.Vector, of.Vector) < q.MinFloor-1e-6 {
			r.Fatalf("%s is below the floor of %s", show(h), show(q))
		}
	}
}

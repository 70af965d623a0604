package memories_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/runtime/memory"
	"github.com/rye-mcp/rye-mcp/runtime/rag"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/memories"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgstoretest"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
	entries "github.com/rye-mcp/rye-mcp/tools/builtin/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine has the memory of a project that others have, too.
type machine struct {
	*testing.T
	*memory.Book

	project *postgres.Store
	opened  func() // is called when the schema is asked for
}

func newMachine(t *testing.T, url string, seal *place.Seal) *machine {
	t.Helper()
	project := pgstoretest.Project(t, pgstoretest.ConnectTo(t, url), "example.org/team/work")
	local := rag.New(rag.At(filepath.Join(t.TempDir(), "memory.db"), "mark"))
	t.Cleanup(func() { must(t, local.Close()) })
	m := &machine{T: t, project: project, opened: func() {}}
	index := &memories.Index{Local: local, Place: seal.Place(), Open: func(context.Context, bool) (memories.Schema, error) {
		m.opened()
		return project, nil
	}}
	m.Book = memory.New(memory.Deps{
		Index: index, Seal: seal, Project: "/project", Lock: index.Lock, Now: time.Now,
		Settings: memory.Settings{Limit: 50, MinFloor: 0.3, ScoreRatio: 0, MaxTokens: 20000},
	})
	return m
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (m machine) write(title, text string, supersedes ...string) entries.Wrote {
	m.Helper()
	wrote, err := m.Write(m.Context(), entries.Writer{By: entries.ByClient}, entries.New{Kind: entries.Decision, Title: title, Text: text, Supersedes: supersedes})
	must(m, err)
	return wrote
}

// titles are those of what is recalled.
func (m machine) titles(text string) string {
	m.Helper()
	got, err := m.Recall(m.Context(), entries.Question{Text: text})
	must(m, err)
	var all []string
	for _, e := range got.Entries {
		all = append(all, e.Title)
	}
	return strings.Join(all, ",")
}

// TestOtherMachine: entries that one machine notes, replaces and forgets are so on the
// other.
func TestOtherMachine(t *testing.T) {
	t.Parallel()
	url, seal := pgtest.Server(t), placetest.NewSeal(t)
	a, b := newMachine(t, url, seal), newMachine(t, url, seal)
	if got := b.titles("release branch"); got != "" {
		t.Errorf("at first there is %q", got)
	}
	wrote := a.write("Release branch", "Every release is cut from the branch stable.")
	if got := b.titles("release branch"); got != "Release branch" {
		t.Errorf("the other recalls %q", got)
	}
	if again := b.write("Release branch", "Every release is cut from the branch stable."); !again.Folded || again.Key != wrote.Key {
		t.Errorf("the same is noted twice: %+v", again)
	}
	b.write("Release trunk", "Releases are cut from trunk since May.", wrote.Key)
	if got := a.titles("release"); got != "Release trunk" {
		t.Errorf("replaced there, here it is %q", got)
	}
	_, err := b.project.Pool().Exec(t.Context(), `DELETE FROM memory_rows`) // all of it is lost, and begun anew
	must(t, err)
	a.write("Tabs", "Indent with tabs in all of the code.")
	if got := b.titles("indent tabs"); got != "Tabs" {
		t.Errorf("afterwards the other recalls %q", got)
	}
}

// TestWriters: of those who note the same on several machines at the same time one adds it, and
// nothing that others note is missed.
func TestWriters(t *testing.T) {
	t.Parallel()
	url, seal := pgtest.Server(t), placetest.NewSeal(t)
	machines := []*machine{newMachine(t, url, seal), newMachine(t, url, seal), newMachine(t, url, seal)}
	words := []string{"amber", "birch", "cedar", "delta", "ember", "fjord"}
	var all sync.WaitGroup
	for n, m := range machines {
		all.Go(func() {
			for _, word := range words {
				_, err := m.Write(t.Context(), entries.Writer{By: entries.ByClient}, entries.New{
					Kind: entries.Decision, Title: "Colour " + word, Text: fmt.Sprintf("The %s service listens where %s says it %s.", word, word, word),
				})
				if err != nil {
					t.Errorf("machine %d: %v", n, err)
				}
			}
		})
	}
	all.Wait()
	for _, m := range machines {
		for _, word := range words {
			if got := m.titles(word); got != "Colour "+word {
				t.Errorf("%s: %q", word, got)
			}
		}
	}
}

// TestAttackForgedEntries: somebody who may write to the database puts entries there, or changes what others have noted.
// Nothing of that is recalled on any machine, and what was noted rightly still is.
func TestAttackForgedEntries(t *testing.T) {
	t.Parallel()
	url, seal := pgtest.Server(t), placetest.NewSeal(t)
	a, b := newMachine(t, url, seal), newMachine(t, url, seal)
	a.write("Right", "Deploy with the blue button only.")
	a.write("Changed", "Rollback with the grey button only.")
	for _, forged := range []string{
		`UPDATE memory_rows SET metadata = replace(metadata, 'grey', 'red'), seq = nextval('memory_changes') WHERE text LIKE '%grey%'`,
		`INSERT INTO memory_rows (namespace, key, text, metadata, created_at) SELECT namespace, 'forged', 'Deploy with the red button', metadata, 1 FROM memory_rows LIMIT 1`,
		`INSERT INTO memory_rows (namespace, key, text, metadata, created_at) VALUES ('rye.memory', 'no json', 'Deploy button', 'no json', 1), ('rye.memory', repeat('k', 5000), 'Deploy button', '{}', 1)`,
		`INSERT INTO memory_rows (namespace, key, text, metadata, vector, model, created_at) VALUES ('rye.memory', 'vector', 'Deploy button', '{}', 'abc', 'm', 1)`,
		`INSERT INTO memory_rows (namespace, key, text, metadata, created_at) VALUES ('rye.memory.heard', 'heard', '999999', '{}', 1), ('others', 'x', 'Deploy button', '{}', 1)`,
	} {
		_, err := a.project.Pool().Exec(t.Context(), forged)
		must(t, err)
	}
	for _, m := range []*machine{a, b} {
		if got := m.titles("button"); got != "Right" {
			t.Errorf("recalled is %q", got)
		}
	}
}

// TestAnotherHistory: a project whose schema was put aside, and made anew, has what is noted
// from then on, and nothing of before, on machines that had followed.
func TestAnotherHistory(t *testing.T) {
	t.Parallel()
	url, seal := pgtest.Server(t), placetest.NewSeal(t)
	server, err := postgres.Connect(t.Context(), postgres.Options{URL: url})
	must(t, err)
	var now memories.Schema
	local := rag.New(rag.At(filepath.Join(t.TempDir(), "memory.db"), "mark"))
	t.Cleanup(func() { must(t, errors.Join(local.Close(), server.Close())) })
	index := &memories.Index{
		Local: local, Place: seal.Place(), Open: func(context.Context, bool) (memories.Schema, error) { return now, nil },
	}
	here := machine{T: t, Book: memory.New(memory.Deps{
		Index: index, Seal: seal, Project: "/project", Now: time.Now, Settings: memory.Settings{Limit: 50, MinFloor: 0.3, MaxTokens: 20000},
	})}
	listed := func() (titles string) {
		all, err := here.List(t.Context(), entries.Filter{})
		must(t, err)
		for _, e := range all.Entries {
			titles += e.Title + ","
		}
		return titles
	}
	elsewhere := func(titles ...string) {
		m := newMachine(t, url, seal)
		now = m.project
		for _, title := range titles {
			m.write(title, "The "+title+" service has a text of its own.")
		}
	}
	elsewhere("Old")
	if got := listed(); got != "Old," {
		t.Fatalf("at first there is %q", got)
	}
	_, err = server.Retire(t.Context(), "example.org/team/work", "")
	must(t, err)
	now = nil
	if got := listed(); got != "" {
		t.Errorf("when it was put aside there is %q", got)
	}
	elsewhere("Amber", "Birch", "Cedar") // more changes than were followed before
	if got := listed(); got != "Cedar,Birch,Amber," {
		t.Errorf("of the new one there is %q", got)
	}
}

// TestRestart: what is noted and recalled while the server starts again succeeds.
func TestRestart(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	cluster := pgtest.Start(t, pgtest.Options{})
	m := newMachine(t, cluster.Database(t), placetest.NewSeal(t))
	for _, call := range []struct {
		name string
		do   func()
	}{
		{"note", func() { m.write("Harbour", "The harbour service has a text of its own.") }},
		{"recall", func() {
			if got := m.titles("harbour"); got != "Harbour" {
				t.Errorf("recalled is %q", got)
			}
		}},
	} {
		cluster.Stop(t)
		up := make(chan struct{})
		m.opened = sync.OnceFunc(func() {
			go func() {
				defer close(up)
				cluster.Up(t)
			}()
		})
		call.do()
		<-up
	}
}

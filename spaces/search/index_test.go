package search_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/search"
)

func TestRefresh(t *testing.T) {
	t.Parallel()
	w := newWorld(t, library())
	x := w.open()
	wantIDs(t, x, "injection", "project/directive/review/security")

	w.write("project/directives/review/security.md", directive("security", "T", "Looks for overflow", "x"))
	wantIDs(t, x, "injection")
	wantIDs(t, x, "overflow", "project/directive/review/security")

	w.write("user/knowledge/new.md", knowledge("New", "", "overflow too"))
	wantIDs(t, x, "overflow", "project/directive/review/security", "user/knowledge/new")

	if err := os.Remove(w.path("project/directives/review/security.md")); err != nil {
		t.Fatal(err)
	}
	wantIDs(t, x, "overflow", "user/knowledge/new")
}

func TestIndexIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, library())
	first := w.open()
	wantIDs(t, first, "injection", "project/directive/review/security")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Search(context.Background(), search.Query{Text: "*"}); err == nil {
		t.Error("a closed index answers")
	}
	// A row that only the file knows tells that it is read, not made anew.
	mark(t, w.db)
	if !marked(t, w.open()) {
		t.Error("the index was built again")
	}
}

// mark puts something into an index that no item says.
func mark(t *testing.T, path string) {
	t.Helper()
	execute(t, path, `UPDATE items SET facts = '[["mark","kept"]]'`)
}

// marked reports whether an index is the one that was marked.
func marked(t *testing.T, x *search.Index) bool {
	t.Helper()
	return find(t, x, search.Query{Text: "*", Options: search.Options{Filters: map[string][]string{"mark": {"kept"}}}}).Total > 0
}

func execute(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", OmitHost: true, Path: path}).String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(statement); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

func TestSystemItemsGoByContent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"system/knowledge/a.md": knowledge("A", "", "older")})
	old := w.open()
	wantIDs(t, old, "older", "system/knowledge/a")
	// Another version of the program, of the same size and without times.
	next := *w
	next.roots.System = fstest.MapFS{"knowledge/a.md": &fstest.MapFile{Data: []byte(knowledge("A", "", "newer"))}}
	wantIDs(t, next.open(), "newer", "system/knowledge/a")
	// Both run, and each sees its own.
	wantIDs(t, old, "older", "system/knowledge/a")
	wantIDs(t, old, "newer")
}

func TestDamagedFile(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	damages := map[string]func(t *testing.T, path string){
		"not a database": func(t *testing.T, path string) {
			overwrite(t, path, []byte(strings.Repeat("garbage ", 4096)), 0)
		},
		"torn pages": func(t *testing.T, path string) {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			overwrite(t, path, bytes.Repeat([]byte{0xA5}, int(info.Size())-4096), 4096)
		},
		"cut short": func(t *testing.T, path string) {
			if err := os.Truncate(path, 5000); err != nil {
				t.Fatal(err)
			}
		},
		"empty":           func(t *testing.T, path string) { overwrite(t, path, nil, 0) },
		"other version":   func(t *testing.T, path string) { execute(t, path, "PRAGMA user_version = 77") },
		"missing table":   func(t *testing.T, path string) { execute(t, path, "DROP TABLE words") },
		"table of others": func(t *testing.T, path string) { execute(t, path, "ALTER TABLE items RENAME COLUMN stamp TO x") },
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, library())
			x := w.open()
			wantIDs(t, x, "injection", "project/directive/review/security")
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			damage(t, w.db)
			again := w.open()
			wantIDs(t, again, "injection", "project/directive/review/security")
			if err := again.Close(); err != nil {
				t.Fatal(err)
			}
			// The file is a good one again, not left behind for memory.
			mark(t, w.db)
			if !marked(t, w.open()) {
				t.Error("the file was not mended")
			}
		})
	}
}

// overwrite writes data at an offset and drops what follows.
func overwrite(t *testing.T, path string, data []byte, at int64) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, writeErr := file.WriteAt(data, at)
	if err := errors.Join(writeErr, file.Truncate(at+int64(len(data))), file.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestDatabaseOfSomethingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, library())
	if err := os.Mkdir(filepath.Dir(w.db), 0o755); err != nil {
		t.Fatal(err)
	}
	execute(t, w.db, "CREATE TABLE precious (x)")
	wantIDs(t, w.open(), "injection", "project/directive/review/security")
	execute(t, w.db, "INSERT INTO precious VALUES (1)")
}

func TestDamageWhileOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, library())
	x := w.open()
	wantIDs(t, x, "injection", "project/directive/review/security")
	execute(t, w.db, "DROP TABLE words")
	wantIDs(t, x, "injection", "project/directive/review/security")
}

func TestFileDeletedWhileOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, library())
	x := w.open()
	wantIDs(t, x, "injection", "project/directive/review/security")
	if err := os.RemoveAll(filepath.Dir(w.db)); err != nil {
		t.Fatal(err)
	}
	w.write("user/knowledge/new.md", knowledge("New", "", "injection"))
	wantIDs(t, x, "injection", "project/directive/review/security", "user/knowledge/new")
}

func TestWithoutAFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, library())
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"no path":           "",
		"folder is a file":  filepath.Join(blocked, "index.db"),
		"index is a folder": t.TempDir(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := w.openAt(path)
			wantIDs(t, x, "injection", "project/directive/review/security")
			wantIDs(t, x, "overflow")
		})
	}
}

func TestCancelledSearch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, library())
	x := w.open()
	cause := errors.New("the caller left")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	if _, err := x.Search(ctx, search.Query{Text: "*"}); !errors.Is(err, cause) {
		t.Errorf("error %v, want the cause", err)
	}
	wantIDs(t, x, "injection", "project/directive/review/security")
}

// TestModel compares the index with a plain map while files come, change and go.
func TestModel(t *testing.T) {
	t.Parallel()
	word := rapid.SampledFrom([]string{"alpha", "beta", "gamma"})
	file := rapid.SampledFrom([]string{"project/knowledge/a.md", "project/knowledge/b.md", "user/knowledge/a.md"})
	w := newWorld(t, nil)
	x := w.open()
	content := map[string]string{} // file to its word
	rapid.Check(t, func(r *rapid.T) {
		for name := range content { // of the run before
			if err := os.Remove(w.path(name)); err != nil {
				r.Fatal(err)
			}
			delete(content, name)
		}
		for range rapid.IntRange(1, 5).Draw(r, "steps") {
			name := file.Draw(r, "file")
			if _, exists := content[name]; exists && rapid.Bool().Draw(r, "remove") {
				if err := os.Remove(w.path(name)); err != nil {
					r.Fatal(err)
				}
				delete(content, name)
			} else {
				content[name] = word.Draw(r, "word")
				w.write(name, knowledge("T", "", content[name]))
			}
			text, want := word.Draw(r, "text"), 0
			for _, has := range content {
				if has == text {
					want++
				}
			}
			if got := find(r, x, search.Query{Text: text}).Total; got != want {
				r.Fatalf("%s: %d items, want %d", text, got, want)
			}
		}
	})
}

func TestConcurrentSearches(t *testing.T) {
	t.Parallel()
	w := newWorld(t, library())
	x := w.open()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			page, err := x.Search(context.Background(), search.Query{Text: "*"})
			if err != nil || page.Total != 5 {
				t.Errorf("total %d, error %v", page.Total, err)
			}
		})
	}
	group.Wait()
}

// childVariable makes the test binary a process that searches, see
// TestManyProcesses.
const childVariable = "RYE_SEARCH_TEST_DIR"

func TestManyProcesses(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv(childVariable); dir != "" {
		searchAsChild(t, dir)
		return
	}
	files := library()
	for i := range 60 {
		files[fmt.Sprintf("user/knowledge/n%d.md", i)] = knowledge("N", "", "crowd")
	}
	delete(files, "system/tools/rye/core/registry.yaml")
	delete(files, "system/tools/rye/corex/other.yaml")
	w := newWorld(t, files)
	children := make([]*exec.Cmd, 3)
	outputs := make([]bytes.Buffer, len(children))
	for i := range children {
		child := exec.Command(os.Args[0], "-test.run=^TestManyProcesses$")
		child.Env = append(os.Environ(), childVariable+"="+filepath.Dir(w.roots.Project))
		child.Stdout, child.Stderr = &outputs[i], &outputs[i]
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		children[i] = child
	}
	for i, child := range children {
		if err := child.Wait(); err != nil {
			t.Errorf("child %d: %v\n%s", i, err, &outputs[i])
		}
	}
	wantIDs(t, w.open(), "injection", "project/directive/review/security")
}

// searchAsChild searches and changes a file of its own, over and over.
func searchAsChild(t *testing.T, dir string) {
	roots := resolve.Roots{Project: filepath.Join(dir, "project"), User: filepath.Join(dir, "user")}
	x, err := search.Open(context.Background(), filepath.Join(dir, "cache", "shared.db"), resolve.New(roots))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}()
	own := fmt.Sprintf("child%d", os.Getpid())
	path := filepath.Join(dir, "user", ".ai", "knowledge", own+".md")
	for i := range 5 {
		// Each content is longer than the one before.
		if err := os.WriteFile(path, []byte(knowledge("T", "", own+strings.Repeat(" x", i))), 0o644); err != nil {
			t.Fatal(err)
		}
		page := find(t, x, search.Query{Text: own})
		if page.Total != 1 {
			t.Errorf("own item found %d times", page.Total)
		}
		if crowd := find(t, x, search.Query{Text: "crowd"}); crowd.Total != 60 {
			t.Errorf("%d items, want 60", crowd.Total)
		}
	}
}

func TestDefaultPath(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	env := func(pairs ...string) func(string) string {
		return func(name string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1]
				}
			}
			return ""
		}
	}
	tests := []struct {
		name   string
		getenv func(string) string
		dir    string
	}{
		{"own variable", env("RYE_CACHE_DIR", "/c", "XDG_CACHE_HOME", "/x"), "/c"},
		{"XDG", env("XDG_CACHE_HOME", "/x"), "/x/rye-mcp"},
	}
	for _, tt := range tests {
		got, err := search.DefaultPath(project, "", tt.getenv)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Dir(got) != tt.dir {
			t.Errorf("%s: %s, want it in %s", tt.name, got, tt.dir)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(project, link); err != nil {
		t.Fatal(err)
	}
	direct, err := search.DefaultPath(project, "", tests[0].getenv)
	if err != nil {
		t.Fatal(err)
	}
	if linked, err := search.DefaultPath(link, "", tests[0].getenv); err != nil || linked != direct {
		t.Errorf("through a link %s, want %s (%v)", linked, direct, err)
	}
	if other, err := search.DefaultPath(project, "/home/other", tests[0].getenv); err != nil || other == direct {
		t.Errorf("two user spaces share %s (%v)", other, err)
	}
	if other, err := search.DefaultPath(t.TempDir(), "", tests[0].getenv); err != nil || other == direct {
		t.Errorf("two projects share %s (%v)", other, err)
	}
}

// hold takes the write lock of a database until it is called.
func hold(t *testing.T, path string) (release func()) {
	t.Helper()
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", OmitHost: true, Path: path}).String()+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := errors.Join(tx.Rollback(), db.Close()); err != nil {
			t.Error(err)
		}
	}
}

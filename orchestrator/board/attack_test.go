package board_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/orchestrator/board"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
)

// TestAttackBoardOfHostileFiles: files of threads are replaced by nonsense, megabytes of one line, pipes, folders and links.
// The board has a row of each that says what cannot be used, and all other rows are whole.
func TestAttackBoardOfHostileFiles(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	whole := s.start("whole", "")
	s.said(whole, "these are my last words")
	long := strings.Repeat("x", 20<<20)
	for name, damage := range map[string]func(path string) error{
		"gone": os.Remove,
		"json": func(path string) error { return os.WriteFile(path, []byte(`{"limits": `), 0o600) },
		"deep": func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("[", 1<<20)), 0o600) },
		"long": func(path string) error { return os.WriteFile(path, []byte(long), 0o600) },
		"folder": func(path string) error {
			return errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "x"), 0o700))
		},
		"link": func(path string) error { return errors.Join(os.Remove(path), os.Symlink("/etc/passwd", path)) },
		"pipe": pipe,
	} {
		for _, file := range []string{"thread.json", "transcript.jsonl"} {
			id := s.start(name+"-"+strings.TrimSuffix(file, filepath.Ext(file)), "")
			s.said(id, "words")
			s.noError(damage(filepath.Join(string(folder.Of(placetest.Dir(s.all.Project), id)), file)))
		}
	}
	f := s.face(s.keeper())
	f.look()
	if len(f.rows) != 15 {
		t.Fatalf("%d rows", len(f.rows))
	}
	for id, row := range f.rows {
		if row.Status != thread.Running || row.Budget == nil {
			t.Errorf("%s", text(row))
		}
		says := strings.Contains(string(id), "thread")
		switch {
		case id == whole:
			if row.LastWords != "these are my last words" || row.Limits == nil || len(row.Damaged) > 0 {
				t.Errorf("%s", text(row))
			}
		case says && (row.Limits != nil || len(row.Damaged) == 0 || row.LastWords != "words"):
			t.Errorf("%s", text(row))
		case !says && row.Limits == nil, !says && row.LastWords != "":
			t.Errorf("%s", text(row))
		}
	}
}

func pipe(path string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) }

// damage changes rows past the store.
func (s *scene) damage(statement string, args ...any) {
	s.Helper()
	db := sharedfile.Pool(filepath.Join(placetest.Dir(s.all.Project), "registry.db"), 1)
	_, err := db.ExecContext(s.ctx, statement, args...)
	s.noError(errors.Join(err, db.Close()))
}

// TestAttackBoardOfHostileTexts: a model's words, a question and an error are megabytes of control characters, broken UTF-8 and text that turns round.
// Each text of the board is valid UTF-8 of a bounded length.
func TestAttackBoardOfHostileTexts(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	hostile := strings.Repeat("\x1b[31m\xff\u202e<img onerror=x>😀\n", 50_000)
	asks, failed := s.start("asks", ""), s.start("failed", "")
	s.said(asks, hostile)
	s.asking = hostile
	s.ask(asks)
	s.end(failed, thread.Outcome{State: thread.Error, Error: &thread.Problem{Code: "x", Message: hostile}, Warnings: []string{hostile, hostile, hostile, hostile, hostile, hostile, hostile}})
	f := s.face(s.keeper())
	f.look()
	up, down := f.rows[asks], f.rows[failed]
	for what, texts := range map[string]struct {
		text string
		most int
	}{
		"words": {up.LastWords, 200}, "question": {up.Question.Text, 2000}, "error": {down.Error.Message, 500}, "warnings": {strings.Join(down.Warnings, ""), 2500},
	} {
		if texts.text == "" || len(texts.text) > texts.most || !utf8.ValidString(texts.text) {
			t.Errorf("%s are %d bytes: %.100q", what, len(texts.text), texts.text)
		}
	}
}

// TestAttackBoardOfCircles: a damaged registry has threads that are below each other, and chains that run in a circle.
// Each thread has a row, and no face comes to an end that there is none of.
func TestAttackBoardOfCircles(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	a := s.start("a", "")
	b := s.start("b", a)
	c := s.start("c", "")
	s.end(c, thread.Outcome{State: thread.Completed})
	d := s.begin(store.NewThread{Directive: "d", ContinuationOf: c})
	s.damage("UPDATE threads SET parent_id = ? WHERE thread_id = ?", b, a)
	s.damage("UPDATE threads SET continuation_thread_id = ?, continuation_of = ? WHERE thread_id = ?", c, d, d)
	s.damage("UPDATE threads SET continuation_of = ? WHERE thread_id = ?", d, c)
	k := s.keeper()
	told, err := k.Since(s.ctx, "", board.Options{})
	s.noError(err)
	seen := map[thread.ID]bool{}
	for _, row := range told.Rows {
		if row.Parent != "" && !seen[row.Parent] {
			t.Errorf("row %s comes before the one above it, %s", row.Key, row.Parent)
		}
		seen[row.Key] = true
	}
	if !seen[a] || !seen[b] || !seen[c] && !seen[d] {
		t.Errorf("rows %v", seen)
	}
}

package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/protect"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// sharedTree is a working tree that threads share.
type sharedTree struct {
	testing.TB
	dir, state string
}

func newTree(t testing.TB) *sharedTree {
	return &sharedTree{t, t.TempDir(), t.TempDir()}
}

// worker is the process of a thread.
type worker struct {
	*sharedTree
	env   tool.Env
	tools *tool.Registry
}

func (tr *sharedTree) worker(id thread.ID) *worker {
	tr.Helper()
	r, err := tool.NewRegistry(Tools(Deps{State: func() string { return tr.state }, Now: time.Now})...)
	if err != nil {
		tr.Fatal(err)
	}
	return &worker{tr, tool.Env{Project: tr.dir, ThreadID: id}, r}
}

func (w *worker) call(name string, in any) (string, error) {
	args, err := json.Marshal(in)
	if err != nil {
		return "", err
	}
	found, ok := w.tools.Get("rye/file-system/" + name)
	if !ok {
		return "", fmt.Errorf("no tool %s", name)
	}
	out, err := found.Call(context.Background(), w.env, args)
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(out)
	return string(raw), err
}

type args = map[string]any

// does calls a tool that must work.
func (w *worker) does(name string, in args) string {
	w.Helper()
	out, err := w.call(name, in)
	if err != nil {
		w.Fatalf("%s %v by %s: %v", name, in, w.env.ThreadID, err)
	}
	return out
}

// refused calls a tool that must be refused for a change by somebody; nothing is written.
func (w *worker) refused(by thread.ID, name string, in args) {
	w.Helper()
	path := filepath.Join(w.dir, in["path"].(string))
	before, _ := os.ReadFile(path)
	_, err := w.call(name, in)
	f, is := errors.AsType[*tool.Fault](err)
	if !is || f.Code != tool.CodeConflict || f.Hint == "" || !strings.Contains(f.Message, "nothing was written") {
		w.Fatalf("%s %v by %s: %v", name, in, w.env.ThreadID, err)
	}
	if got, _ := f.Details["changed_by"].(thread.ID); got != by || by != "" && !strings.Contains(f.Message, "by thread "+string(by)) {
		w.Errorf("changed by %q, want %q: %s", got, by, f.Message)
	}
	if after, _ := os.ReadFile(path); string(after) != string(before) {
		w.Errorf("%s was written all the same", path)
	}
}

func (tr *sharedTree) put(path, content string) {
	tr.Helper()
	if err := os.WriteFile(filepath.Join(tr.dir, path), []byte(content), 0o600); err != nil {
		tr.Fatal(err)
	}
}

// firstID is the id of the first line that a read shows.
func firstID(shown string) string {
	return regexp.MustCompile(`1:([0-9a-f]{6})\|`).FindStringSubmatch(shown)[1]
}

// A thread that writes what another has changed since is refused, and told by whom.
func TestStaleWrite(t *testing.T) {
	t.Parallel()
	tr := newTree(t)
	a, b := tr.worker("a-1"), tr.worker("b-1")
	tr.put("f", "one\ntwo\n")
	a.does("read", args{"path": "f"})
	id := firstID(b.does("read", args{"path": "f"}))
	a.does("write", args{"path": "f", "content": "one\nTWO\n"})
	a.does("write", args{"path": "f", "content": "one\n2\n"}) // its own

	b.refused("a-1", "write", args{"path": "f", "content": "mine"})
	change := []args{{"line_id": id, "new_content": "ONE"}}
	b.refused("a-1", "edit_lines", args{"path": "f", "changes": change})
	id = firstID(b.does("read", args{"path": "f"}))
	b.does("edit_lines", args{"path": "f", "changes": []args{{"line_id": id, "new_content": "ONE"}}})
	a.refused("b-1", "write", args{"path": "f", "content": "mine"})
	b.does("write", args{"path": "f", "content": "b's\n"})

	// An addition undoes nothing, and nothing of the file is read for it.
	a.does("write", args{"path": "f", "content": "added\n", "mode": "append"})
	a.refused("", "write", args{"path": "f", "content": "mine"})
	b.refused("a-1", "write", args{"path": "f", "content": "mine"})
	if got, _ := os.ReadFile(filepath.Join(tr.dir, "f")); string(got) != "b's\nadded\n" {
		t.Errorf("the file holds %q", got)
	}
}

// A change by a command or a person is seen by its content. Lines that are known by
// their ids can be edited all the same.
func TestStaleWriteUnknown(t *testing.T) {
	t.Parallel()
	tr := newTree(t)
	a, client := tr.worker("a-1"), tr.worker("")
	tr.put("f", "one\n")
	id := firstID(a.does("read", args{"path": "f"}))
	tr.put("f", "one\nby a command\n")
	a.refused("", "write", args{"path": "f", "content": "mine"})
	a.does("edit_lines", args{"path": "f", "changes": []args{{"line_id": id, "new_content": "1"}}})
	a.refused("", "write", args{"path": "f", "content": "mine"}) // the rest of it was not read
	a.does("read", args{"path": "f"})
	client.does("write", args{"path": "f", "content": "by a client\n"})
	client.does("write", args{"path": "f", "content": "by a client again\n"}) // which is not held to anything
	a.refused("", "write", args{"path": "f", "content": "mine"})

	a.does("read", args{"path": "f"})
	if err := os.Remove(filepath.Join(tr.dir, "f")); err != nil {
		t.Fatal(err)
	}
	a.refused("", "write", args{"path": "f", "content": "mine"})
	if _, err := a.call("read", args{"path": "f"}); err == nil {
		t.Error("a file that is gone was read")
	}
	a.does("write", args{"path": "f", "content": "new\n"})
}

// A file that a thread never read can be replaced, unless another thread wrote it since
// this one began.
func TestStaleWriteUnread(t *testing.T) {
	t.Parallel()
	tr := newTree(t)
	tr.put("old", "by a person\n")
	before := tr.worker("before-1")
	before.does("write", args{"path": "report", "content": "yesterday\n"})
	tick := time.Now().UnixMilli()
	for time.Now().UnixMilli() == tick { // the clock goes by milliseconds
	}
	a, b := tr.worker("a-1"), tr.worker("b-1")
	a.does("write", args{"path": "old", "content": "a's\n"})
	a.does("write", args{"path": "report", "content": "today\n"})
	a.does("write", args{"path": "fresh", "content": "a's\n"})
	for _, path := range []string{"old", "report", "fresh"} {
		b.refused("a-1", "write", args{"path": path, "content": "b's\n"})
		b.does("read", args{"path": path})
		b.does("write", args{"path": path, "content": "b's\n"})
	}
	// All of several files, or none.
	a.does("read", args{"path": "old"})
	a.does("write", args{"path": "old", "content": "a's again\n"})
	_, err := b.call("write", args{"files": []args{{"path": "unwritten", "content": "x"}, {"path": "old", "content": "b's"}}})
	if f, is := errors.AsType[*tool.Fault](err); !is || f.Code != tool.CodeConflict {
		t.Errorf("several files: %v", err)
	}
	if _, err := os.Stat(filepath.Join(tr.dir, "unwritten")); err == nil {
		t.Error("one of them was written")
	}
}

// A file that another thread replaces between the look at it and its opening, or while a
// thread waits for its turn, is the new one: reading and editing go on with that.
func TestReplacedWhileOpened(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("f", "old\n")
	p, err := (&space{}).open(tool.Env{Project: b.dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	pl, err := p.find("f", protect.Writing)
	if err != nil {
		t.Fatal(err)
	}
	defer pl.Close()
	do[writeResult](b, "write", in{"path": "f", "content": "new\n"})
	if data, _, err := pl.content(); err != nil || string(data) != "new\n" {
		t.Errorf("%q, %v", data, err)
	}
	if err := os.Remove(filepath.Join(b.dir, "f")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := pl.content(); tool.AsFault(err).Code != tool.CodeNotFound {
		t.Errorf("a file that is gone: %v", err)
	}
}

// TestAttackStaleLink: a thread writes a file that another has changed by another name of it, through a link, a folder that is a link or a path with "..".
// The file is known by where it lies, and the write is refused.
func TestAttackStaleLink(t *testing.T) {
	t.Parallel()
	tr := newTree(t)
	for _, err := range []error{
		os.MkdirAll(filepath.Join(tr.dir, "sub", "deep"), 0o700), os.Symlink("sub", filepath.Join(tr.dir, "folder")),
		os.Symlink(filepath.Join("sub", "f"), filepath.Join(tr.dir, "link")),
	} {
		if err != nil {
			t.Skip(err)
		}
	}
	for _, name := range []string{"link", "folder/f", "sub/deep/../f", "./sub/f"} {
		a, b := tr.worker("a-1"), tr.worker("b-1")
		tr.put("sub/f", "as it was\n")
		b.does("read", args{"path": name})
		a.does("read", args{"path": "sub/f"})
		a.does("write", args{"path": "sub/f", "content": "a's\n"})
		b.refused("a-1", "write", args{"path": name, "content": "b's\n"})
	}
}

// Records that were damaged, and a full memory, refuse nothing and forget names alone.
func TestStaleWriteRecords(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	tr := newTree(t)
	a, b := tr.worker("a-1"), tr.worker("b-1")
	tr.put("f", "one\n")
	b.does("read", args{"path": "f"})
	a.does("read", args{"path": "f"})
	a.does("write", args{"path": "f", "content": "a's\n"})
	dir := filepath.Join(tr.state, writtenName)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".json") {
			if err := os.WriteFile(filepath.Join(dir, e.Name()), []byte("[{"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.refused("", "write", args{"path": "f", "content": "mine"})
	for i := range 5000 {
		a.does("write", args{"path": fmt.Sprintf("many/%d", i%200), "content": "x", "mode": "append"})
		if i == 400 {
			break
		}
	}
	entries, err = os.ReadDir(dir)
	if err != nil || len(entries) > 2*shards {
		t.Errorf("%d records (%v)", len(entries), err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Size() > 40_000 {
			t.Errorf("%s has %d bytes", e.Name(), info.Size())
		}
	}
	// Where no thread has run there is nothing to record in, and nothing is made.
	none := &sharedTree{t, t.TempDir(), filepath.Join(t.TempDir(), "none")}
	none.worker("a-1").does("write", args{"path": "f", "content": "x"})
	if _, err := os.Stat(none.state); err == nil {
		t.Error("state was made")
	}
}

// writerVar makes the test binary one of twenty writers: its number, the tree and the
// state.
const writerVar = "RYE_TEST_WRITER"

// TestTwentyWriters has twenty processes add lines to one file, each by reading and
// replacing all of it: none undoes what another has written. Of twenty that replace a file
// which none has read, one does.
func TestTwentyWriters(t *testing.T) {
	longtest.Mark(t)
	if told := os.Getenv(writerVar); told != "" {
		writeMany(t, strings.Split(told, " "))
		return
	}
	t.Parallel()
	const writers = 20
	tr := newTree(t)
	tr.put("shared", "begin\n")
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	began, start, outs := make([]*exec.Cmd, writers), make([]io.Closer, writers), make([]io.Reader, writers)
	for i := range writers {
		cmd := exec.CommandContext(t.Context(), executable, "-test.run=^TestTwentyWriters$")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s %s", writerVar, i, tr.dir, tr.state))
		cmd.Stderr = os.Stderr
		in, inErr := cmd.StdinPipe()
		out, outErr := cmd.StdoutPipe()
		if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil { // it has begun
			t.Fatal(err)
		}
		began[i], start[i], outs[i] = cmd, in, out
	}
	for _, in := range start {
		_ = in.Close()
	}
	for i, cmd := range began {
		said, _ := io.ReadAll(outs[i])
		if err := cmd.Wait(); err != nil {
			t.Errorf("writer %d: %v\n%s", i, err, said)
		}
	}
	data, err := os.ReadFile(filepath.Join(tr.dir, "shared"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(data))
	slices.Sort(lines)
	if got := len(slices.Compact(lines)); got != 1+writers*linesEach {
		t.Errorf("%d lines of %d are left", got, 1+writers*linesEach)
	}
	if data, err := os.ReadFile(filepath.Join(tr.dir, "won")); err != nil || len(strings.Fields(string(data))) != 1 {
		t.Errorf("%q have replaced the file that nobody had read (%v)", data, err)
	}
}

// linesEach is how many lines each of the writers adds.
const linesEach = 3

func writeMany(t *testing.T, told []string) {
	w := (&sharedTree{t, told[1], told[2]}).worker(thread.ID("writer-" + told[0]))
	fmt.Println()
	if _, err := io.ReadAll(os.Stdin); err != nil { // until all have begun
		t.Fatal(err)
	}
	if _, err := w.call("write", args{"path": "unread", "content": told[0]}); err == nil {
		w.does("write", args{"path": "won", "content": told[0] + "\n", "mode": "append"})
	}
	for n := range linesEach {
		for {
			w.does("read", args{"path": "shared"})
			data, err := os.ReadFile(filepath.Join(w.dir, "shared")) // perhaps more than was read, and then refused
			if err != nil {
				t.Fatal(err)
			}
			_, err = w.call("write", args{"path": "shared", "content": fmt.Sprintf("%s%s.%d\n", data, told[0], n)})
			if err == nil {
				break
			}
			if f, is := errors.AsType[*tool.Fault](err); !is || f.Code != tool.CodeConflict {
				t.Fatal(err)
			}
		}
	}
}

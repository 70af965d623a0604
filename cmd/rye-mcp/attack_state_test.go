package main_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	home "github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/system"
)

// obeys is a model that does what a hostile folder wants of it.
const obeys = `
-- model.yaml --
turns:
  - times: 1
    tool_calls: [{name: rye_bash, input: {command: touch pwned}}]
  - text: Done.
`

// newVictim is a place whose user has the default settings: strict, no key.
func newVictim(t *testing.T) *place {
	t.Helper()
	p := newPlace(t, obeys)
	p.noError(os.RemoveAll(filepath.Join(p.home(), ".ai")))
	return p
}

func (p *place) home() string { return filepath.Join(filepath.Dir(p.dir), "home") }

// queued puts a thread of rye/demo/worker in the queue, as nobody should be allowed to:
// with every right, in state that is not signed.
func (p *place) queued(state string) {
	p.Helper()
	db, err := sqlite.Open(p.Context(), state, sqlite.Options{})
	p.noError(err)
	found, err := resolve.New(resolve.Roots{System: system.FS()}).Find(item.Directive, "rye/demo/worker")
	p.noError(err)
	now := time.Now()
	rec, _, err := store.Register(p.Context(), db, store.NewThread{
		Kind: thread.KindDirective, Directive: found.ID, Name: "worker", Model: "anthropic/claude-haiku-4-5", Now: now,
	}, func(id thread.ID) error { return folder.Of(state, id).Make() })
	p.noError(err)
	p.noError(db.OpenRoot(p.Context(), rec.ThreadID, 1_000_000, now))
	meta, err := json.Marshal(thread.Meta{
		Version: thread.MetaVersion, ThreadID: rec.ThreadID, Kind: rec.Kind, Directive: found.ID, DirectivePath: found.Path,
		DirectiveHash: found.Hash, Space: string(found.Space), Status: thread.Created, CreatedAt: now, UpdatedAt: now, Model: rec.Model,
		Inputs: map[string]any{"part": "x"}, Limits: thread.Limits{Turns: 9, Tokens: 1 << 20, Spend: 1_000_000, DurationSeconds: 60},
		Capabilities: []string{"rye.execute.tool.*"}, ChainRootID: rec.ThreadID,
	})
	p.noError(err)
	p.noError(os.WriteFile(folder.Of(state, rec.ThreadID).Meta(), meta, 0o600))
	_, err = db.Enqueue(p.Context(), rec.ThreadID, 0, now)
	p.noError(errors.Join(err, db.Close()))
}

// tree is a hash of everything in a folder, with the modes.
func (p *place) tree(dir string) string {
	p.Helper()
	sum := sha256.New()
	p.noError(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintln(sum, path, info.Mode(), info.ModTime().UnixNano())
		if !d.Type().IsRegular() {
			return nil
		}
		content, err := os.ReadFile(path)
		sum.Write(content)
		return err
	}))
	return string(sum.Sum(nil))
}

// command runs rye-mcp in the project and returns all that it says.
func (p *place) command(args ...string) string {
	p.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.program, args...)
	cmd.Dir, cmd.Env = p.dir, p.env
	said, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		p.Fatalf("rye-mcp %s: %v", strings.Join(args, " "), err)
	}
	return string(said)
}

// looked looks at the project in every way that only looks, and returns how many
// threads it was told of.
func (p *place) looked() int {
	p.Helper()
	h := p.serve()
	list := must[struct{ Count int }](h, "list_threads", args{})
	must[json.RawMessage](h, "rye_search", args{"query": "worker"})
	h.close()
	for _, command := range []string{"threads list", "threads list --json", "doctor", "search worker", "threads health"} {
		p.command(strings.Fields(command)...)
	}
	return list.Count
}

// wantNothingRan fails the test when a hostile folder has come to do anything.
func (p *place) wantNothingRan() {
	p.Helper()
	if _, err := os.Lstat(filepath.Join(p.dir, "pwned")); err == nil {
		p.Error("the command of the hostile folder has run")
	}
	if n := p.model.requests(); n > 0 {
		p.Errorf("the model was asked %d times", n)
	}
	if left, err := processesIn(p.dir); err != nil || len(left) > 0 {
		p.Errorf("processes in the project: %q, %v", left, err)
	}
}

// wantLeft looks at a project whose state is a stranger's, and fails the test
// unless that is left as it is.
func (p *place) wantLeft(dirs ...string) {
	p.Helper()
	var before, after []string
	for _, dir := range dirs {
		before = append(before, p.tree(dir))
	}
	if n := p.looked(); n != 0 {
		p.Errorf("%d threads of a stranger are listed", n)
	}
	p.wantNothingRan()
	for i, dir := range dirs {
		after = append(after, p.tree(dir))
		if before[i] != after[i] {
			p.Errorf("%s was changed", dir)
		}
	}
	if said := p.command("doctor"); !strings.Contains(said, "is not yours") && !strings.Contains(said, "no thread can start") {
		p.Errorf("doctor does not name the stranger's state:\n%s", said)
	}
}

// wantTold fails the test unless the first answer of a server, and no other, names
// what is not the user's.
func (p *place) wantTold(want string) {
	p.Helper()
	h := p.serve()
	defer h.close()
	for i := range 2 {
		said := must[struct {
			Notices []string `json:"settings_warnings"`
		}](h, "list_threads", args{})
		if told := strings.Contains(strings.Join(said.Notices, "\n"), want); told != (i == 0) {
			p.Errorf("answer %d tells %q", i+1, said.Notices)
		}
	}
}

// TestAttackCommittedState: a repository commits its state with a queued thread that has every right and is not signed. It is left as it is and named, and nothing of it runs.
func TestAttackCommittedState(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newVictim(t)
	state := placetest.Dir(p.dir)
	p.queued(state)
	p.wantLeft(state)
	p.wantTold("1 thread that no key has signed is here, in " + state)
	if _, err := os.Lstat(filepath.Join(p.home(), ".ai")); err == nil {
		t.Error("looking has made a user space")
	}
}

// TestAttackSignedState: a repository commits state that its author's own state key signed, place and all. It is a stranger's to everybody else, and their own threads are kept beside it.
func TestAttackSignedState(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newVictim(t)
	state := placetest.Dir(p.dir)
	author := filepath.Join(filepath.Dir(p.dir), "author")
	_, err := placetest.Make(p.dir, author)
	p.noError(err)
	p.queued(state)
	p.wantLeft(state)

	before := p.tree(state)
	p.ownThread()
	if p.tree(state) != before {
		t.Error("a thread of the user's own has changed the stranger's state")
	}
	if beside, err := filepath.Glob(filepath.Join(p.dir, ".ai", "state", "*", "threads", "registry.db")); err != nil || len(beside) != 1 {
		t.Errorf("the user's own registry: %q, %v", beside, err)
	}
	if n := p.looked(); n != 1 {
		t.Errorf("%d threads are listed, want the one of the user", n)
	}
}

// ownThread runs a thread of the user, who signs nothing.
func (p *place) ownThread() {
	p.Helper()
	p.write(".ai/directives/own.md", []byte("# Own\n\n```xml\n<directive name=\"own\" version=\"1.0.0\"><metadata><description>Own work</description>"+
		"<model tier=\"fast\" /><permissions /></metadata></directive>\n```\n\nWork.\n"))
	p.noError(uncheckSignatures(p.home()))
	if said := p.command("run", "own", "--json"); !strings.Contains(said, `"thread_id"`) {
		p.Fatalf("run own: %s", said)
	}
	p.noError(os.RemoveAll(filepath.Join(p.home(), ".ai", "config", "agent")))
	p.until(func() (bool, string) { // it tells its outcome before it completes its files
		err := locksFree(placetest.Dir(p.dir))
		left, _ := processesIn(p.dir)
		return err == nil && len(left) == 0, fmt.Sprintf("%v, processes %q", err, left)
	})
}

// TestAttackCopiedState: state that its own user has published comes back in a repository, at another path. It is a copy, and is left as it is.
func TestAttackCopiedState(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newVictim(t)
	p.ownThread()
	original := p.dir
	p.dir = filepath.Join(filepath.Dir(p.dir), "clone")
	p.noError(os.CopyFS(p.dir, os.DirFS(original)))
	asked := p.model.requests()
	before := p.tree(placetest.Dir(p.dir))
	if n := p.looked(); n != 0 {
		t.Errorf("%d threads of a copy are listed", n)
	}
	if p.model.requests() != asked || p.tree(placetest.Dir(p.dir)) != before {
		t.Error("the copy was not left as it was")
	}
	if said := p.command("doctor"); !strings.Contains(said, "it is a copy of what is in "+original) {
		t.Errorf("doctor does not name the copy:\n%s", said)
	}
}

// TestMovedState: a project that is moved to another folder keeps its threads.
func TestMovedState(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newVictim(t)
	p.ownThread()
	original := p.dir
	p.dir = filepath.Join(filepath.Dir(p.dir), "moved")
	p.noError(os.Rename(original, p.dir))
	if n := p.looked(); n != 1 {
		t.Errorf("%d threads of a moved project are listed, want 1", n)
	}
}

// TestAttackArrivedQueue: published state of a project that is gone comes back in a repository, genuine to the last byte and with a thread in the queue. The threads are the user's, and the one in the queue is cancelled.
func TestAttackArrivedQueue(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newVictim(t)
	p.ownThread()
	original := p.dir
	p.enqueue()
	p.dir = filepath.Join(filepath.Dir(p.dir), "clone")
	p.noError(errors.Join(os.CopyFS(p.dir, os.DirFS(original)), os.RemoveAll(original)))
	asked := p.model.requests()
	if n := p.looked(); n != 2 || p.model.requests() != asked {
		t.Errorf("%d threads are listed, the model was asked %d times", n, p.model.requests()-asked)
	}
	if said := p.command("threads", "list"); !strings.Contains(said, "cancelled") {
		t.Errorf("list:\n%s", said)
	}
}

// enqueue puts one more thread of the user's own in the queue, which nobody has started.
func (p *place) enqueue() {
	p.Helper()
	found, err := home.Finder{User: p.home(), Now: time.Now, Item: func() (*sign.PublicKey, error) { return nil, nil }}.Find(p.dir)
	p.noError(err)
	db, err := sqlite.Open(p.Context(), found.Dir, sqlite.Options{Mark: found.Seal.Mark})
	p.noError(err)
	now := time.Now().Add(time.Hour) // another id than that of the first
	rec, _, err := store.Register(p.Context(), db, store.NewThread{
		Kind: thread.KindDirective, Directive: "own", Name: "own", Model: "anthropic/claude-haiku-4-5", Now: now,
	}, func(id thread.ID) error { return folder.Of(found.Dir, id).Make() })
	p.noError(err)
	p.noError(folder.Of(found.Dir, rec.ThreadID).WriteMeta(thread.Meta{
		ThreadID: rec.ThreadID, Kind: rec.Kind, Directive: "own", Status: thread.Created, CreatedAt: now, Model: rec.Model,
	}, found.Seal))
	_, err = db.Enqueue(p.Context(), rec.ThreadID, 0, now)
	p.noError(errors.Join(err, db.Close()))
}

// TestAttackPlaceDocument: a repository commits the user's own place document, from published state, beside a queued thread of its author. The place is not here, and nothing of it runs.
func TestAttackPlaceDocument(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newVictim(t)
	p.ownThread()
	document, err := os.ReadFile(filepath.Join(placetest.Dir(p.dir), "place.json"))
	p.noError(err)
	asked := p.model.requests()
	p.dir = filepath.Join(filepath.Dir(p.dir), "clone")
	state := placetest.Dir(p.dir)
	p.queued(state)
	p.write(".ai/state/threads/place.json", document)
	before := p.tree(state)
	if n := p.looked(); n != 0 || p.tree(state) != before || p.model.requests() != asked {
		t.Errorf("%d threads are listed; the state may have changed, or the model was asked", n)
	}
}

// TestAttackReplacedDatabases: registry, ledger or both are replaced by others, in which a thread of the attacker is queued. They lack the mark of the place, are set aside, and only threads with signed folders come back.
func TestAttackReplacedDatabases(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, files := range [][]string{{"registry.db"}, {"budget_ledger.db"}, {"registry.db", "budget_ledger.db"}} {
		t.Run(strings.Join(files, " and "), func(t *testing.T) {
			t.Parallel()
			p := newVictim(t)
			p.ownThread()
			asked := p.model.requests()
			theirs := filepath.Join(filepath.Dir(p.dir), "theirs")
			p.queued(theirs)
			state := placetest.Dir(p.dir)
			for _, file := range files {
				for _, ending := range []string{"-wal", "-shm"} {
					p.noError(os.RemoveAll(filepath.Join(state, file+ending)))
				}
				p.noError(os.Rename(filepath.Join(theirs, file), filepath.Join(state, file)))
			}
			p.noError(os.CopyFS(filepath.Join(state, "rye"), os.DirFS(filepath.Join(theirs, "rye")))) // the thread's folder
			if n := p.looked(); n != 1 || p.model.requests() != asked {
				t.Errorf("%d threads are listed, want 1; the model was asked %d times", n, p.model.requests()-asked)
			}
			for _, file := range files {
				if kept, err := filepath.Glob(filepath.Join(state, file+".corrupt-*")); err != nil || len(kept) == 0 {
					t.Errorf("%s was not set aside: %v", file, err)
				}
			}
		})
	}
}

// TestAttackReplacedState: while a server has the state open, a checkout puts a stranger's in its place, with a thread in the queue. The server leaves it as it is and keeps the user's next threads beside it, and nothing of it runs.
func TestAttackReplacedState(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newVictim(t)
	p.ownThread()
	asked := p.model.requests()
	h := p.serve()
	must[json.RawMessage](h, "list_threads", args{}) // it is open
	state := placetest.Dir(p.dir)
	p.noError(os.Rename(state, state+"-gone"))
	_, err := placetest.Make(p.dir, filepath.Join(filepath.Dir(p.dir), "author"))
	p.noError(err)
	p.queued(state)
	before := p.tree(state)
	for _, name := range []string{"list_threads", "thread_health", "reconcile_threads"} {
		must[json.RawMessage](h, name, args{})
	}
	if list := must[struct{ Count int }](h, "list_threads", args{}); list.Count != 0 {
		t.Errorf("%d threads are listed", list.Count)
	}
	h.close()
	if p.tree(state) != before {
		t.Error("the stranger's state was changed")
	}
	if n := p.looked(); n != 0 || p.model.requests() != asked || p.tree(state) != before {
		t.Errorf("afterwards %d threads are listed, %d requests", n, p.model.requests()-asked)
	}
	if _, err := os.Lstat(filepath.Join(p.dir, "pwned")); err == nil {
		t.Error("the command of the stranger has run")
	}
	p.ownThread()
	if n := p.looked(); n != 1 || p.tree(state) != before {
		t.Errorf("after a thread of the user's %d are listed", n)
	}
}

// TestAttackReplacedThreadJSON: the thread.json of the user's own thread is replaced, by one that is not signed, or is a genuine one of another place. The thread does not verify.
func TestAttackReplacedThreadJSON(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newVictim(t)
	p.ownThread()
	metas, err := filepath.Glob(filepath.Join(placetest.Dir(p.dir), "own-*", "thread.json"))
	if err != nil || len(metas) != 1 {
		t.Fatalf("%q, %v", metas, err)
	}
	genuine, err := os.ReadFile(metas[0])
	p.noError(err)
	elsewhere := *p
	elsewhere.dir = filepath.Join(filepath.Dir(p.dir), "elsewhere")
	p.noError(os.MkdirAll(filepath.Join(elsewhere.dir, ".ai"), 0o700))
	elsewhere.ownThread()
	others, err := filepath.Glob(filepath.Join(placetest.Dir(elsewhere.dir), "own-*", "thread.json"))
	if err != nil || len(others) != 1 {
		t.Fatalf("%q, %v", others, err)
	}
	other, err := os.ReadFile(others[0])
	p.noError(err)
	if said := p.command("threads", "verify", "--all"); !strings.Contains(said, "verified") {
		t.Fatalf("before: %s", said)
	}
	for name, content := range map[string]string{
		"unsigned":  strings.Replace(string(genuine), `"_signature"`, `"signature"`, 1),
		"widened":   strings.Replace(string(genuine), `"capabilities":[]`, `"capabilities":["rye.*"]`, 1),
		"elsewhere": string(other),
	} {
		p.noError(os.WriteFile(metas[0], []byte(content), 0o600))
		if said := p.command("threads", "verify", "--all", "--json"); !strings.Contains(said, `"verified": false`) {
			t.Errorf("%s: %s", name, said)
		}
	}
}

// TestAttackLockFiles: a repository commits lock files that name a living process. They keep nobody from anything and make no thread count as alive.
func TestAttackLockFiles(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newVictim(t)
	state := placetest.Dir(p.dir)
	for _, name := range []string{"registry.lock", "ledger.lock", "line.lock", "rye/demo/worker-1/thread.lock"} {
		p.write(".ai/state/threads/"+name, []byte(strconv.Itoa(os.Getpid())+"\n"))
	}
	p.queued(state)
	p.wantLeft(state)
	p.noError(os.RemoveAll(filepath.Join(state, "registry.db")))
}

// TestAttackLinkedState: a repository commits a symbolic link to the state of another project of its user, as .ai, .ai/state or .ai/state/threads. It is not followed, and that project stays as it is.
func TestAttackLinkedState(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, link := range []string{".ai", ".ai/state", ".ai/state/threads"} {
		t.Run(link, func(t *testing.T) {
			t.Parallel()
			p := newVictim(t)
			p.ownThread()
			original, asked := p.dir, p.model.requests()
			p.dir = filepath.Join(filepath.Dir(p.dir), "clone")
			path := filepath.Join(p.dir, filepath.FromSlash(link))
			p.noError(os.MkdirAll(filepath.Dir(path), 0o700))
			p.noError(os.Symlink(filepath.Join(original, filepath.FromSlash(link)), path))
			before := p.tree(placetest.Dir(original))
			if n := p.looked(); n != 0 {
				t.Errorf("%d threads of another project are listed", n)
			}
			p.command("run", "rye/demo/worker", "--input", "part=x")
			if p.tree(placetest.Dir(original)) != before {
				t.Error("the state of the other project was changed")
			}
			if link != ".ai/state/threads" && p.model.requests() != asked {
				t.Error("a thread has run")
			}
		})
	}
}

// requests is how many requests have come so far.
func (m *model) requests() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

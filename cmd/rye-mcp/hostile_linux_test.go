package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/sys/unix"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// canary stands in the files outside a hostile project; no answer may show it.
const canary = "canary-5f1d-outside"

// looks are the commands that only look. THREAD is the id of a committed thread.
var looks = [][]string{
	{"threads", "list", "--all", "--json"}, {"threads", "list", "--active"}, {"threads", "show", "THREAD"},
	{"threads", "tail", "THREAD"}, {"threads", "chain", "THREAD"}, {"threads", "chain", "THREAD", "--search", "e"},
	{"threads", "verify", "--all"}, {"threads", "health"}, {"threads", "reconcile"}, {"threads", "approve"},
	{"validate", "--all"}, {"hooks", "explain", "evil"}, {"keys", "list"}, {"doctor"}, {"config", "show"},
	{"config", "show", "providers/anthropic"}, {"__complete", "run", ""}, {"__complete", "threads", "show", ""},
	{"__complete", "run", "evil", "--model", ""}, {"version"},
}

// asks are the calls of a client that only look.
var asks = []struct {
	tool      string
	arguments args
}{
	{"rye_search", args{"query": "*", "scope": "directive"}},
	{"rye_search", args{"query": "evil"}},
	{"rye_fetch", args{"item_type": "directive", "item_id": "evil"}},
	{"rye_fetch", args{"item_type": "tool", "item_id": "evil"}},
	{"rye_fetch", args{"item_type": "knowledge", "item_id": "evil"}},
	{"rye_execute", args{"item_type": "directive", "item_id": "evil", "thread": "fork", "dry_run": true}},
	{"rye_execute", args{"item_type": "directive", "item_id": "rye/demo/worker", "thread": "fork", "dry_run": true}},
	{"list_threads", args{}}, {"list_active", args{}}, {"thread_health", args{}}, {"reconcile_threads", args{}},
	{"get_status", args{"thread_id": "THREAD"}}, {"read_transcript", args{"thread_id": "THREAD"}},
	{"get_chain", args{"thread_id": "THREAD"}}, {"chain_search", args{"thread_id": "THREAD", "text": "e"}},
	{"aggregate_results", args{"thread_ids": []string{"THREAD"}}},
	{"wait_threads", args{"thread_ids": []string{"THREAD"}, "timeout": 0.1}},
}

// variants replace a file of .ai by something else.
var variants = []struct {
	name string
	put  func(path, outside string, r *rand.Rand) error
}{
	{"empty", content("", 0)},
	{"nul", content("\x00", 4096)},
	{"no UTF-8", content("\xff\xfe", 500)},
	{"random", func(path, _ string, r *rand.Rand) error { return os.WriteFile(path, randomBytes(r, 4096), 0o600) }},
	{"deep JSON", content(`{"a":[`, 50_000)},
	{"YAML bomb", func(path, _ string, _ *rand.Rand) error { return os.WriteFile(path, yamlBomb(), 0o600) }},
	{"dotted keys", content("a.", 8000, "b=1\n")},
	{"one long line", content("x ", 1<<20)},
	{"huge and sparse", func(path, _ string, _ *rand.Rand) error {
		return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 4<<30))
	}},
	{"folder", func(path, _ string, _ *rand.Rand) error { return os.Mkdir(path, 0o700) }},
	{"pipe", func(path, _ string, _ *rand.Rand) error { return syscall.Mkfifo(path, 0o600) }},
	{"link out to a file", func(path, outside string, _ *rand.Rand) error {
		return os.Symlink(filepath.Join(outside, "secret.md"), path)
	}},
	{"link out to a folder", func(path, outside string, _ *rand.Rand) error { return os.Symlink(outside, path) }},
	{"link to itself", func(path, _ string, _ *rand.Rand) error { return os.Symlink(filepath.Base(path), path) }},
	{"link that climbs", func(path, outside string, _ *rand.Rand) error {
		up, err := filepath.Rel(filepath.Dir(path), filepath.Join(outside, "secret.md"))
		if err != nil {
			return err
		}
		return os.Symlink(up, path)
	}},
}

// content repeats a text. It is not made before it is written: this program is also every
// rye-mcp of the tests.
func content(text string, times int, end ...string) func(path, _ string, _ *rand.Rand) error {
	return func(path, _ string, _ *rand.Rand) error {
		return os.WriteFile(path, []byte(strings.Repeat(text, times)+strings.Join(end, "")), 0o600)
	}
}

// yamlBomb doubles an alias 30 times.
func yamlBomb() []byte {
	var bomb bytes.Buffer
	bomb.WriteString("a0: &a0 [x, x]\n")
	for i := 1; i < 30; i++ {
		fmt.Fprintf(&bomb, "a%d: &a%d [*a%d, *a%d]\n", i, i, i-1, i-1)
	}
	return bomb.Bytes()
}

// TestAttackHostileFolder: every file and folder of a cloned project's .ai is a trap: garbage, bombs, pipes, links out, committed state, settings that
// name the attacker's host and scripts. Every command and call that only looks runs nothing, sends nothing, and reads and changes nothing outside.
func TestAttackHostileFolder(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	h := newHostile(t)
	whole := soakMinutes() > 0
	t.Run("as committed", func(t *testing.T) { h.copied(t).lookAtAll(false) })
	t.Run("without a key", func(t *testing.T) { h.copied(t).lookAtAll(true) })
	for i, v := range variants {
		if whole {
			t.Run("every file "+v.name, func(t *testing.T) { h.copied(t).replaced(uint64(i), v.put).lookAtAll(false) })
		}
	}
	for seed := range sized(1, 100) {
		t.Run(fmt.Sprintf("mixed %d", seed), func(t *testing.T) { h.copied(t).replaced(uint64(seed), nil).lookAtAll(seed%2 == 1) })
	}
	for _, dir := range []string{"", "config", "config/agent", "directives", "knowledge", "tools", "state", "state/threads"} {
		if whole || dir == "" || dir == "state" {
			t.Run("linked out "+dir, func(t *testing.T) { h.copied(t).linkedOut(dir).lookAtAll(false) })
		}
	}
}

// hostile is a folder that somebody else has committed, with what watches the
// world around it.
type hostile struct {
	testing.TB
	committed string // the attacker's project
	thread    string // an id of its state
	calls     *atomic.Int64
	url       string
	// Of one copy:
	project, home, outside, cache string
}

// newHostile has the attacker make a project with threads that have run, hang,
// and are queued.
func newHostile(t *testing.T) *hostile {
	t.Helper()
	p := newPlace(t, attackerFiles)
	h := &hostile{TB: t, committed: p.dir}
	h.url, h.calls = listen(t)
	server := p.serve()
	done := must[view.Started](server, "rye_execute", args{"item_type": "directive", "item_id": "done", "thread": "fork"})
	h.thread = string(done.ThreadID)
	for range 2 { // the first is killed, the second is queued behind it
		must[view.Started](server, "rye_execute", args{"item_type": "directive", "item_id": "stay", "thread": "fork", "async": true})
	}
	p.wantCalls(2)
	server.close()
	p.killAll()
	for _, file := range txtar.Parse([]byte(hostileFiles)).Files {
		p.write(file.Name, file.Data)
	}
	return h
}

// killAll kills every process of the project.
func (p *place) killAll() {
	p.Helper()
	p.until(func() (bool, string) {
		running, err := processesIn(p.dir)
		p.noError(err)
		for _, process := range running {
			var pid int
			if _, err := fmt.Sscan(process, &pid); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		return len(running) == 0, fmt.Sprint(running)
	})
}

// listen counts the connections that anybody makes to it.
func listen(t *testing.T) (url string, calls *atomic.Int64) {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	calls = new(atomic.Int64)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			calls.Add(1)
			_ = conn.Close()
		}
	}()
	return "http://" + listener.Addr().String(), calls
}

// copied is a clone of the attacker's project on the machine of a victim.
func (h *hostile) copied(t *testing.T) *hostile {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := *h
	c.TB, c.project, c.home = t, filepath.Join(root, "project"), filepath.Join(root, "home")
	c.outside, c.cache = filepath.Join(root, "outside"), filepath.Join(root, "cache")
	for _, dir := range []string{c.home, c.outside, c.cache} {
		c.noError(os.MkdirAll(dir, 0o700))
	}
	c.noError(os.CopyFS(c.project, os.DirFS(h.committed)))
	for _, name := range []string{"secret.md", "thread.json", "agent.yaml", "registry.db"} {
		c.noError(os.WriteFile(filepath.Join(c.outside, name), []byte(canary), 0o600))
	}
	c.noError(filepath.WalkDir(c.project, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.Contains(path, "/state/") {
			return err
		}
		text, err := os.ReadFile(path)
		text = bytes.ReplaceAll(text, []byte("LISTENER"), []byte(c.url))
		text = bytes.ReplaceAll(text, []byte("OUTSIDE"), []byte(c.outside))
		return errors.Join(err, os.WriteFile(path, text, 0o600))
	}))
	return &c
}

func (h *hostile) noError(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// replaced replaces every file of .ai by a variant, or by one that chance
// chooses, which may be what it was.
func (h *hostile) replaced(seed uint64, put func(path, outside string, r *rand.Rand) error) *hostile {
	h.Helper()
	r := rand.New(rand.NewPCG(seed, 11))
	var files []string
	h.noError(filepath.WalkDir(filepath.Join(h.project, ".ai"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	}))
	for _, path := range files {
		chosen := put
		if put == nil {
			n := r.IntN(len(variants) + 5)
			if n >= len(variants) {
				continue
			}
			chosen = variants[n].put
		}
		h.noError(os.Remove(path))
		h.noError(chosen(path, h.outside, r))
	}
	return h
}

// linkedOut makes a link out of the project of a folder below .ai; its files
// lie there.
func (h *hostile) linkedOut(dir string) *hostile {
	h.Helper()
	from, to := filepath.Join(h.project, ".ai", dir), filepath.Join(h.outside, "moved")
	h.noError(os.Rename(from, to))
	h.noError(os.Symlink(to, from))
	return h
}

// lookAtAll runs everything that only looks and holds the world against what it
// was before.
func (h *hostile) lookAtAll(withoutKey bool) {
	h.Helper()
	if !withoutKey {
		h.run("keys", "generate")
	}
	before := h.world()
	opened := watchOpens(h.TB, h.outside)
	for _, command := range looks {
		h.run(command...)
		h.nothingOpened(strings.Join(command, " "), opened())
	}
	h.askAll(opened)
	if n := h.calls.Swap(0); n > 0 {
		h.Errorf("the attacker's host was called %d times", n)
	}
	after := h.world()
	for path, was := range before {
		if after[path] != was {
			h.Errorf("%s was %q and is %q", path, was, after[path])
		}
	}
	for path, is := range after {
		if _, known := before[path]; !known {
			h.Errorf("%s is new: %q", path, is)
		}
	}
	h.nothingRuns()
}

// nothingOpened names the command that has opened what lies outside.
func (h *hostile) nothingOpened(command string, events []string) {
	h.Helper()
	if len(events) > 0 {
		h.Errorf("%s opened outside: %.400q", command, slices.Compact(events))
	}
}

// nothingRuns looks for processes that the looks have left behind.
func (h *hostile) nothingRuns() {
	h.Helper()
	poll(h.Fatalf, func() (bool, string) {
		running, err := processesIn(h.project)
		return err == nil && len(running) == 0, fmt.Sprint("still running: ", running, err)
	})
}

// world is what lies in project, home and outside: type, mode, size, time of the
// last change and target of links, by path.
func (h *hostile) world() map[string]string {
	h.Helper()
	found := map[string]string{}
	for _, root := range []string{h.project, h.home, h.outside} {
		h.noError(filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := os.Lstat(path)
			if err != nil {
				return err
			}
			link, _ := os.Readlink(path)
			found[path] = fmt.Sprint(info.Mode(), info.Size(), info.ModTime().UnixNano(), link)
			return nil
		}))
	}
	return found
}

func (h *hostile) environment() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "HOME=" + h.home, "USER_SPACE=" + h.home, "RYE_CACHE_DIR=" + h.cache,
		"GORACE=atexit_sleep_ms=0 " + os.Getenv("GORACE"), "GOCOVERDIR=" + os.Getenv("GOCOVERDIR"),
		"ANTHROPIC_API_KEY=" + testKey, "OPENAI_API_KEY=" + testKey, "GITHUB_TOKEN=" + testKey,
	}
}

// run runs a command, which may fail, but neither hang nor panic nor show what
// lies outside.
func (h *hostile) run(arguments ...string) {
	h.Helper()
	arguments = slices.Clone(arguments)
	for i, word := range arguments {
		arguments[i] = strings.ReplaceAll(word, "THREAD", h.thread)
	}
	ctx, cancel := context.WithTimeout(context.Background(), waitPatience)
	defer cancel()
	command := exec.CommandContext(ctx, "rye-mcp", arguments...)
	command.Dir, command.Env = h.project, h.environment()
	out, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		h.Errorf("%q: %v", arguments, errors.Join(err, ctx.Err()))
	}
	h.harmless(strings.Join(arguments, " "), string(out))
}

func (h *hostile) harmless(what, said string) {
	h.Helper()
	for _, word := range []string{canary, testKey, "panic: ", "goroutine "} {
		if strings.Contains(said, word) {
			h.Errorf("%s says %q:\n%.2000s", what, word, said)
		}
	}
}

// askAll makes the calls of one client.
func (h *hostile) askAll(opened func() []string) {
	h.Helper()
	p := &place{TB: h.TB, dir: h.project, program: "rye-mcp", env: h.environment()}
	server := p.serve()
	h.nothingOpened("--stdio", opened())
	for _, look := range asks {
		arguments := args{}
		for name, value := range look.arguments {
			switch value := value.(type) {
			case string:
				arguments[name] = strings.ReplaceAll(value, "THREAD", h.thread)
			case []string:
				arguments[name] = []string{h.thread}
			default:
				arguments[name] = value
			}
		}
		answer, err := ask[map[string]any](server, look.tool, arguments)
		var no *refused
		if err != nil && !errors.As(err, &no) {
			h.Errorf("%s: %v", look.tool, err)
		}
		h.harmless(look.tool, fmt.Sprint(answer, err))
		h.nothingOpened(look.tool, opened())
	}
	server.close()
	h.harmless("the server's log", server.readLog())
	h.noError(os.Remove(server.log))
}

// watchOpens tells what has been opened in a folder since.
func watchOpens(t testing.TB, dir string) func() []string {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	paths := map[int32]string{}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		watch, err := unix.InotifyAddWatch(fd, path, unix.IN_OPEN|unix.IN_MODIFY|unix.IN_CREATE|unix.IN_DELETE|unix.IN_ATTRIB)
		paths[int32(watch)] = path
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	readEvents(t, fd, paths) // the walk's own
	return func() []string { return readEvents(t, fd, paths) }
}

func readEvents(t testing.TB, fd int, paths map[int32]string) (events []string) {
	t.Helper()
	buffer := make([]byte, 64<<10)
	for {
		n, err := unix.Read(fd, buffer)
		if errors.Is(err, unix.EAGAIN) {
			return events
		}
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at+unix.SizeofInotifyEvent <= n; {
			watch := int32(le32(buffer[at:]))
			mask, length := le32(buffer[at+4:]), int(le32(buffer[at+12:]))
			at += unix.SizeofInotifyEvent
			name := string(bytes.TrimRight(buffer[at:at+length], "\x00"))
			at += length
			events = append(events, fmt.Sprintf("%s %#x", filepath.Join(paths[watch], name), mask))
		}
	}
}

// le32 reads a number of an inotify event; Linux on amd64 and arm64 is little
// endian.
func le32(b []byte) uint32 {
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

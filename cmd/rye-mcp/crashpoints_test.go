package main_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing/fstest"
	"time"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/cli"
	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// A process of the tests dies at a point of its program when these are set.
// They begin with RYE_, so threads have what their server has.
const (
	// traceVariable names a file to which every step is added that a process
	// comes to, with the time in nanoseconds.
	traceVariable = "RYE_TEST_TRACE"
	// pointVariable names the step at which to die, and tokensVariable the folder
	// whose files are used up there, in order: each process that comes to the step
	// takes one, and the one that takes the last dies. So one process dies, at the n-th time.
	pointVariable  = "RYE_TEST_POINT"
	tokensVariable = "RYE_TEST_TOKENS"
	lastToken      = "last"
	// memoryVariable names a folder for what the system knows of the memory of each
	// process that ends a thread, once all of it is written.
	memoryVariable = "RYE_TEST_MEMORY"
	// clockVariable is how far the clock of the machine is set forward, as a duration.
	clockVariable = "RYE_TEST_CLOCK"
	// newerVariable names the folder of migrations in which a newer version has one more.
	newerVariable = "RYE_TEST_NEWER"
	// leaseVariable is how long the lease of a worker lasts, as a duration.
	leaseVariable = "RYE_TEST_LEASE"
	// signalVariable is how long signals mean what the first one meant, as a duration.
	signalVariable = "RYE_TEST_SIGNAL"
)

// testSystem is the machine with the steps observed as the environment says.
func testSystem() cli.System {
	sys := withHistory(cli.OS())
	trace, point, tokens := sys.Getenv(traceVariable), sys.Getenv(pointVariable), sys.Getenv(tokensVariable)
	memory := sys.Getenv(memoryVariable)
	if ahead, err := time.ParseDuration(sys.Getenv(clockVariable)); err == nil {
		sys.Now = func() time.Time { return time.Now().Add(ahead) }
	}
	if lease, err := time.ParseDuration(sys.Getenv(leaseVariable)); err == nil {
		sys.Lease = lease
	}
	if one, err := time.ParseDuration(sys.Getenv(signalVariable)); err == nil {
		sys.OneSignal = one
	}
	if folder := sys.Getenv(newerVariable); folder != "" {
		sys.Migrations = newerMigrations(folder)
	}
	if trace == "" && point == "" && memory == "" {
		return sys
	}
	sys.Crashpoints = func(s thread.Crashpoint) {
		if memory != "" && s == finish.CrashKnowledge { // before anybody is told
			keepStatus(memory)
		}
		if trace != "" {
			addLine(trace, fmt.Sprint(s, " ", time.Now().UnixNano()))
		}
		if string(s) == point && takeLast(tokens) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // until it is delivered
		}
	}
	return sys
}

// keepStatus writes down what the system knows of this process.
func keepStatus(dir string) {
	status, err := os.ReadFile("/proc/self/status")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, strconv.Itoa(os.Getpid())), status, 0o600)
	}
	if err != nil {
		panic(err)
	}
}

// addLine panics when it cannot, as a step that is not seen would be missed by
// nobody.
func addLine(path, line string) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := fmt.Fprintln(f, line); err != nil {
		panic(err)
	}
}

// takeLast takes a token and reports whether it was the last one.
func takeLast(tokens string) bool {
	names, err := os.ReadDir(tokens) // sorted
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		if os.Remove(filepath.Join(tokens, name.Name())) == nil {
			return name.Name() == lastToken
		}
	}
	return false
}

// dieAt is the environment of processes of which one dies, when the step is
// come to for the n-th time (from 1), and a function that tells whether one has.
func (p *place) dieAt(at thread.Crashpoint, n int) (env []string, died func() bool) {
	p.Helper()
	tokens := p.TempDir()
	for i := range n {
		name := fmt.Sprintf("%03d", i)
		if i == n-1 {
			name = lastToken
		}
		p.noError(os.WriteFile(filepath.Join(tokens, name), nil, 0o600))
	}
	last := filepath.Join(tokens, lastToken)
	return []string{pointVariable + "=" + string(at), tokensVariable + "=" + tokens}, func() bool {
		_, err := os.Stat(last)
		return err != nil
	}
}

// reached is a step that a process has come to.
type reached struct {
	crash thread.Crashpoint
	at    time.Time
}

// trace is the environment of processes that write down the steps they come to,
// and a function that returns them.
func (p *place) trace() (env []string, steps func() []reached) {
	p.Helper()
	file := filepath.Join(p.TempDir(), "trace")
	p.noError(os.WriteFile(file, nil, 0o600))
	return []string{traceVariable + "=" + file}, func() []reached {
		content, err := os.ReadFile(file)
		p.noError(err)
		var steps []reached
		for line := range strings.Lines(string(content)) {
			var (
				point thread.Crashpoint
				at    int64
			)
			_, err := fmt.Sscan(line, &point, &at)
			p.noError(err)
			steps = append(steps, reached{point, time.Unix(0, at)})
		}
		return steps
	}
}

// newerMigrations are those of the program, and one more in the folder at a path, which older
// versions can work beside for as long as they have the tables open.
func newerMigrations(at string) fs.FS {
	all, known := fstest.MapFS{}, 0
	below := strings.LastIndex(at, "/migrations")
	ours, folder := os.DirFS(at[:below]), at[below+1:]
	err := fs.WalkDir(ours, "migrations", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if path.Dir(name) == folder {
			known++
		}
		text, err := fs.ReadFile(ours, name)
		all[name] = &fstest.MapFile{Data: text}
		return err
	})
	if err != nil {
		panic(err) // the files that this program was made of can be read
	}
	table := map[string]string{"migrations": "threads", "migrations/fleet": "rye.workers"}[folder]
	all[fmt.Sprintf("%s/%04d_newer.sql", folder, known+1)] = &fstest.MapFile{
		Data: []byte("-- +goose Up\nALTER TABLE " + table + " ADD COLUMN newer text NOT NULL DEFAULT 'x';\n"),
	}
	return all
}

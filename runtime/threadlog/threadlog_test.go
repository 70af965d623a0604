package threadlog

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// The test binary is also the process whose log it is: in this variable it finds
// what to do.
const sceneVariable = "THREADLOG_TEST_SCENE"

const testBytes = 32 << 10

func TestMain(m *testing.M) {
	if scene := os.Getenv(sceneVariable); scene != "" {
		scenes[scene](os.Args[1])
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

const writers = 4

var scenes = map[string]func(path string){
	"few":  func(path string) { writeLines(path, 300, true) },
	"many": func(path string) { writeLines(path, 5000, false) },
	"panic": func(path string) {
		writeLines(path, 5000, true)
		panic("the last words")
	},
	"moved": func(path string) {
		log := wrap(os.Stderr, path, testBytes)
		check(os.Rename(path, path+".elsewhere"))
		check(os.WriteFile(path, []byte("a stranger's\n"), 0o600))
		for range 5000 {
			_, err := io.WriteString(log, "a line of the log, long enough\n")
			check(err)
		}
	},
	"no room": func(path string) {
		check(os.Chmod(filepath.Dir(path), 0o500))
		if os.Getuid() == 0 { // whom no mode stops
			check(os.Mkdir(path+".new", 0o700))
		}
		writeLines(path, 5000, false)
	},
	"child": func(path string) {
		log := wrap(os.Stderr, path, testBytes)
		cmd := exec.Command("sh", "-c", "read x; echo from the child >&2")
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		check(err)
		check(cmd.Start())
		_, err = log.Write(append(bytes.Repeat([]byte("x"), testBytes), '\n'))
		check(err)
		_, err = io.WriteString(log, "after\n")
		check(err)
		check(in.Close())
		check(cmd.Wait())
	},
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// writeLines has several goroutines write numbered lines through the log and,
// when raw is set, as many that write to the standard streams past it.
func writeLines(path string, lines int, raw bool) {
	log := wrap(os.Stderr, path, testBytes)
	var group sync.WaitGroup
	for w := range writers {
		streams := map[string]io.Writer{"log": log}
		if raw {
			streams["raw"] = []io.Writer{os.Stderr, os.Stdout}[w%2]
		}
		for name, to := range streams {
			group.Go(func() {
				for n := range lines {
					_, err := fmt.Fprintf(to, "%s%d line %d of the log\n", name, w, n)
					check(err)
				}
			})
		}
	}
	group.Wait()
}

// play runs a scene in a process whose standard output and error are the log,
// and returns the log's path.
func play(t *testing.T, scene string) (path string, state *os.ProcessState) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "thread.log")
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, fileMode)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], path)
	cmd.Env = append(os.Environ(), sceneVariable+"="+scene)
	cmd.Stdout, cmd.Stderr = log, log
	_ = cmd.Run() // the state says more
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return path, cmd.ProcessState
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

var numbered = regexp.MustCompile(`^(\w+) line (\d+) of the log$`)

// checkLines: what is kept is whole lines, those of each writer in order and
// without a gap up to the last one.
func checkLines(t *testing.T, text string, lines int) (first map[string]int) {
	t.Helper()
	first, next := map[string]int{}, map[string]int{}
	for line := range strings.Lines(text) {
		m := numbered.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			t.Fatalf("a line that nobody wrote: %q", line)
		}
		n, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		if want, seen := next[m[1]]; seen && n != want {
			t.Fatalf("%s wrote %d after %d", m[1], n, want-1)
		} else if !seen {
			first[m[1]] = n
		}
		next[m[1]] = n + 1
	}
	for name, n := range next {
		if n != lines {
			t.Errorf("the last line of %s is %d of %d", name, n-1, lines)
		}
	}
	return first
}

func TestRotates(t *testing.T) {
	t.Parallel()
	path, state := play(t, "many")
	if !state.Success() {
		t.Fatalf("%s: %s", state, read(t, path))
	}
	checkLines(t, read(t, path+".1")+read(t, path), 5000)
	for _, name := range []string{path, path + ".1"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > testBytes || info.Mode().Perm() != fileMode {
			t.Errorf("%s is %d bytes, mode %v", name, info.Size(), info.Mode())
		}
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
}

// TestNothingIsLost: a log that was put aside once holds, with the one before,
// every line from every writer, also from those that write past it.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	path, state := play(t, "few")
	if !state.Success() {
		t.Fatalf("%s: %s", state, read(t, path))
	}
	text := read(t, path)
	if before, err := os.ReadFile(path + ".1"); err == nil {
		text = string(before) + text
	}
	for name, n := range checkLines(t, text, 300) {
		if n != 0 {
			t.Errorf("%s begins with line %d", name, n)
		}
	}
}

func TestPanicLandsInTheLog(t *testing.T) {
	t.Parallel()
	path, state := play(t, "panic")
	if text := read(t, path); state.Success() || !strings.Contains(text, "panic: the last words") ||
		!strings.Contains(text, "goroutine 1 ") {
		t.Errorf("%s: the log ends with %q", state, text[max(0, len(text)-500):])
	}
	if _, err := os.Stat(path + ".1"); err != nil {
		t.Error(err)
	}
}

// TestLeavesOthersAlone: a log that was moved away is written on, and what is in
// its place is not touched.
func TestLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	path, state := play(t, "moved")
	if got := read(t, path); !state.Success() || got != "a stranger's\n" {
		t.Errorf("%s: %q", state, got)
	}
	if n := strings.Count(read(t, path+".elsewhere"), "\n"); n != 5000 {
		t.Errorf("%d lines", n)
	}
}

// TestNoRoom: a log that cannot be put aside goes on.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	path, state := play(t, "no room")
	if err := os.Chmod(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if !state.Success() {
		t.Fatal(state)
	}
	for name, n := range checkLines(t, read(t, path), 5000) {
		if n != 0 {
			t.Errorf("%s begins with line %d", name, n)
		}
	}
}

// TestInherited: what a child writes to the log it inherited is not lost.
func TestInherited(t *testing.T) {
	t.Parallel()
	path, state := play(t, "child")
	if got := read(t, path); !state.Success() || got != "after\n" {
		t.Errorf("%s: %q", state, got)
	}
	if got := read(t, path+".1"); !strings.HasSuffix(got, "x\nfrom the child\n") {
		t.Errorf("the log before ends with %q", got[max(0, len(got)-100):])
	}
}

// TestWrapsOnlyTheLog: another standard error is used as it is.
func TestWrapsOnlyTheLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "thread.log")
	var buffer bytes.Buffer
	if got := Wrap(&buffer, path); got != io.Writer(&buffer) {
		t.Errorf("got %T", got)
	}
	if got := Wrap(os.Stderr, path); got != io.Writer(os.Stderr) {
		t.Errorf("there is no log: got %T", got)
	}
	if err := syscall.Mkfifo(path, fileMode); err != nil {
		t.Fatal(err)
	}
	if got := Wrap(os.Stderr, path); got != io.Writer(os.Stderr) {
		t.Errorf("the log is something else: got %T", got)
	}
}

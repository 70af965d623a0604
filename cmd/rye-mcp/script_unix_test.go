package main_test

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// killpid PID SIGNAL sends a signal to a process the script did not start
// itself.
func killPID(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: killpid PID KILL|TERM|INT|STOP|CONT")
	}
	pid, err := strconv.Atoi(args[0])
	ts.Check(err)
	signal, known := map[string]syscall.Signal{
		"KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM, "INT": syscall.SIGINT,
		"STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT, "0": 0,
	}[args[1]]
	if !known {
		ts.Fatalf("signal %s is not known", args[1])
	}
	if err := syscall.Kill(pid, signal); (err != nil) != neg {
		ts.Fatalf("kill %s %s: %v (negated: %t)", args[1], args[0], err, neg)
	}
}

// corpus DIR copies the directives and knowledge of the corpus into a space,
// or, where the corpus is not there, the look-alikes of testdata/corpus.
func copyCorpus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: corpus DIR")
	}
	ts.Check(os.CopyFS(ts.MkAbs(args[0]), os.DirFS(ts.Getenv("CORPUS"))))
}

// noleftovers PROJECT checks that no lock of a thread is held any more.
func noLeftovers(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: noleftovers PROJECT")
	}
	state := filepath.Join(ts.MkAbs(args[0]), ".ai", "state", "threads")
	ts.Check(filepath.WalkDir(state, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Name() != "thread.lock" {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
			ts.Fatalf("%s is still held: %v", path, err)
		}
		return nil
	}))
}

package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rye-mcp/rye-mcp/tools/process"
)

// killPID is killpid PID SIGNAL: it signals a process the script did not start
// itself.
func killPID(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: killpid PID KILL|TERM|INT|HUP|STOP|CONT")
	}
	pid := number(ts, args[0])
	signal, known := map[string]syscall.Signal{
		"KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM, "INT": syscall.SIGINT,
		"HUP": syscall.SIGHUP, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT,
	}[args[1]]
	if !known {
		ts.Fatalf("signal %s is not known", args[1])
	}
	ts.Check(syscall.Kill(pid, signal))
}

// waitUntilGone is gone PID: it waits until a process has ended. With ! it
// checks that the process still lives.
func waitUntilGone(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: [!] gone PID")
	}
	pid := number(ts, args[0])
	if neg {
		if process.Gone(pid) {
			ts.Fatalf("process %d has ended", pid)
		}
		return
	}
	poll(ts.Fatalf, func() (bool, string) { return process.Gone(pid), "process " + args[0] + " lives on" })
}

// holdLock is holds PIDFILE LOCKFILE [PIPE]: a process that suspends itself while it has
// a lock, or with a named pipe waits until that is written to.
func holdLock(args []string) int {
	lock, err := os.OpenFile(args[1], os.O_RDWR, 0)
	if err == nil {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)
	}
	if err == nil {
		err = os.WriteFile(args[0], []byte(strconv.Itoa(os.Getpid())), 0o600)
	}
	if err == nil && len(args) > 2 {
		_, err = os.ReadFile(args[2])
	}
	if err == nil && len(args) > 2 {
		return 0
	}
	goesOn := make(chan os.Signal, 1)
	signal.Notify(goesOn, syscall.SIGCONT)
	if err == nil {
		err = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	<-goesOn // another of its threads may be the one that stops first
	return 0
}

// unNohup is unnohup PROGRAM ARGUMENTS: it becomes the program, for which the end of
// the terminal is one, though the tests themselves may run under nohup.
func unNohup(args []string) int {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	path, err := exec.LookPath(args[0])
	if err == nil {
		err = syscall.Exec(path, args, os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// waitUntilSuspended is suspended PIDFILE: it waits until the process that writes the
// file is suspended, and keeps its number as HOLDER.
func waitUntilSuspended(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: suspended PIDFILE")
	}
	poll(ts.Fatalf, func() (bool, string) {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		ts.Setenv("HOLDER", strconv.Itoa(pid))
		return err == nil && process.Stopped(pid), "nobody in " + filepath.Base(args[0]) + " is suspended"
	})
	holder, err := os.FindProcess(number(ts, ts.Getenv("HOLDER")))
	ts.Check(err)
	ts.Defer(func() { _ = holder.Kill() }) // its number may be another's by then
}

// number is the id of a process; 0 and 1 are no process a script may touch.
func number(ts *testscript.TestScript, s string) int {
	pid, err := strconv.Atoi(s)
	ts.Check(err)
	if pid <= 1 {
		ts.Fatalf("%d is no process of a script", pid)
	}
	return pid
}

// poll looks every 10 ms, for what makes no event, until done. After waitPatience
// it calls fatal, which does not return.
func poll(fatal func(format string, args ...any), look func() (done bool, otherwise string)) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(waitPatience)
	for {
		done, otherwise := look()
		if done {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			fatal("%s", otherwise)
		}
	}
}

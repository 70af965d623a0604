//go:build linux || darwin

package process

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestDetach(t *testing.T) {
	t.Parallel()
	hub := newHub(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	spec := hub.helper().spec("thread", nil)
	spec.Dir = dir
	spec.Env = append(spec.Env, "ONLY=this")
	must(t, os.WriteFile(spec.LogPath, []byte("earlier\n"), 0o600))
	started, err := Detach(spec)
	must(t, err)
	thread := hub.peer("thread")
	if started.PID() != thread.pid {
		t.Errorf("pid %d, it says %d", started.PID(), thread.pid)
	}

	sid, err := unix.Getsid(thread.pid)
	must(t, err)
	pgid, err := unix.Getpgid(thread.pid)
	must(t, err)
	if sid != thread.pid || pgid != thread.pid {
		t.Errorf("session %d, group %d of process %d", sid, pgid, thread.pid)
	}
	env := strings.Fields(thread.ask("env"))
	slices.Sort(env)
	want := slices.Sorted(slices.Values(spec.Env))
	if !slices.Equal(env, want) {
		t.Errorf("environment %q, want %q", env, want)
	}
	thread.want("dir", dir)
	thread.want("stdin", `""`)
	thread.want("say hello", "ok")
	select {
	case <-started.Done():
		t.Error("done while it lives")
	default:
	}
	thread.send("exit 3")
	arrives(t, "end", started.Done())
	if got := started.Exit(); got != (Exit{Code: 3}) {
		t.Errorf("exit %+v", got)
	}
	if err := syscall.Kill(thread.pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("it was not reaped: %v", err)
	}
	log, err := os.ReadFile(spec.LogPath)
	must(t, err)
	if string(log) != "earlier\nhello\nerr:hello\n" {
		t.Errorf("log %q", log)
	}
}

func TestDetachGivesAnEmptyEnvironment(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	env, err := filepath.EvalSymlinks("/usr/bin/env")
	if err != nil {
		t.Skip("no env(1) here")
	}
	started, err := Detach(Spec{Path: env, LogPath: log})
	must(t, err)
	arrives(t, "end", started.Done())
	out, err := os.ReadFile(log)
	must(t, err)
	if len(out) > 0 || started.Exit().Code != 0 {
		t.Errorf("exit %v, environment %q", started.Exit(), out)
	}
	info, err := os.Stat(log)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("log has mode %v", info.Mode())
	}
}

func TestDetachRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lock, err := Acquire(filepath.Join(dir, "lock"))
	must(t, err)
	must(t, lock.Release())
	log := filepath.Join(dir, "log")
	tests := []struct {
		name string
		spec Spec
		want error // nil: any
	}{
		{"relative program", Spec{Path: "env", LogPath: log}, nil},
		{"missing program", Spec{Path: filepath.Join(dir, "missing"), LogPath: log}, os.ErrNotExist},
		{"missing folder", Spec{Path: executable(), Dir: filepath.Join(dir, "missing"), LogPath: log}, os.ErrNotExist},
		{"no place for the log", Spec{Path: executable(), LogPath: filepath.Join(dir, "missing", "log")}, os.ErrNotExist},
		{"released lock", Spec{Path: executable(), LogPath: log, Lock: lock}, ErrReleased},
	}
	for _, tt := range tests {
		_, err := Detach(tt.spec)
		if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		}
	}
}

func TestExitString(t *testing.T) {
	t.Parallel()
	tests := map[string]Exit{
		"exit code 0":         {},
		"exit code 2":         {Code: 2},
		"killed by SIGKILL":   {Code: -1, Signal: "SIGKILL"},
		"exit status unknown": exitOf(nil),
	}
	for want, exit := range tests {
		if got := exit.String(); got != want {
			t.Errorf("%+v: %q, want %q", exit, got, want)
		}
	}
}

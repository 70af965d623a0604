//go:build linux || darwin

package process

import (
	"context"
	"errors"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"
)

// brief is the patience with a process that is known to ignore the signal, and
// patience that with one which obeys.
const brief = 20 * time.Millisecond

// thread is a detached helper that holds its life lock.
func thread(t *testing.T, h *hub) (*peer, *Started, func() bool) {
	t.Helper()
	path := h.path("lock")
	lock, err := Acquire(path)
	must(t, err)
	started, err := Detach(h.helper().spec("thread", lock))
	must(t, err)
	must(t, lock.Release())
	p := h.peer("thread")
	p.want("inherit "+path, "ok")
	return p, started, func() bool {
		held, err := Held(path)
		return err != nil || held
	}
}

func TestStopGroup(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		orders []string // to the process, beforehand
		ladder Ladder
		want   How
		signal string
	}{
		{"obeys SIGINT", nil, Ladder{Soft: patience, Term: patience}, Interrupted, "SIGINT"},
		{"no soft step", nil, Ladder{Term: patience}, Terminated, "SIGTERM"},
		{"ignores SIGINT", []string{"ignore-int"}, Ladder{Soft: brief, Term: patience}, Terminated, "SIGTERM"},
		{"ignores both", []string{"ignore"}, Ladder{Soft: brief, Term: brief}, Killed, "SIGKILL"},
		{"no patience", nil, Ladder{}, Killed, "SIGKILL"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			hub := newHub(t)
			p, started, alive := thread(t, hub)
			for _, order := range tt.orders {
				p.want(order, "ok")
			}
			how, err := StopGroup(t.Context(), p.pid, alive, tt.ladder)
			must(t, err)
			if how != tt.want {
				t.Errorf("%s, want %s", how, tt.want)
			}
			p.dies()
			arrives(t, "end", started.Done())
			if got := started.Exit().Signal; got != tt.signal {
				t.Errorf("it died of %s, want %s", got, tt.signal)
			}
			how, err = StopGroup(t.Context(), p.pid, alive, tt.ladder)
			if how != AlreadyGone || err != nil {
				t.Errorf("second stop: %s, %v", how, err)
			}
		})
	}
}

// TestLadderWithoutPatience: a step that may take no time is left out. A process that is sent
// SIGTERM in the moment before SIGKILL could decide that it was cancelled, and write that.
func TestLadderWithoutPatience(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		ladder Ladder
		want   []How
	}{
		{Ladder{Soft: brief, Term: brief}, []How{Interrupted, Terminated, Killed}},
		{Ladder{Soft: brief}, []How{Interrupted, Killed}},
		{Ladder{Term: brief}, []How{Terminated, Killed}},
		{Ladder{}, []How{Killed}},
	} {
		var got []How
		for _, r := range tt.ladder.rungs(2) {
			got = append(got, r.how)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%+v has the steps %v, want %v", tt.ladder, got, tt.want)
		}
	}
}

// The command of a thread has a process group of its own, and ignores signals as
// long as it can; nothing of it may outlive the thread. A process that it detached may.
func TestStopGroupLeavesNothingOfTheSession(t *testing.T) {
	t.Parallel()
	for _, soft := range []bool{true, false} {
		hub := newHub(t)
		p, started, alive := thread(t, hub)
		p.want("start tool", "ok")
		p.want("start own-group group", "ok")
		p.want("start other-session session", "ok")
		tool, own, other := hub.peer("tool"), hub.peer("own-group"), hub.peer("other-session")
		tool.want("start tool-of-tool group", "ok")
		deep := hub.peer("tool-of-tool")
		for _, p := range []*peer{tool, own, deep} {
			p.want("ignore", "ok")
		}
		ladder := Ladder{Soft: patience, Term: patience}
		if !soft {
			p.want("ignore", "ok")
			ladder = Ladder{}
		}
		_, err := StopGroup(t.Context(), p.pid, alive, ladder)
		must(t, err)
		for _, p := range []*peer{p, tool, own, deep} {
			if !Gone(p.pid) {
				t.Errorf("soft %v: %s is still there", soft, p.name)
			}
			p.dies()
		}
		arrives(t, "end", started.Done())
		other.want("ping", "pong")
		other.kill()
	}
}

// SIGTERM goes to the whole group, while its leader takes its time.
func TestStopGroupTerminatesTheGroup(t *testing.T) {
	t.Parallel()
	hub := newHub(t)
	p, started, alive := thread(t, hub)
	p.want("start tool", "ok")
	tool := hub.peer("tool")
	p.want("ignore", "ok")
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		how, err := StopGroup(t.Context(), p.pid, alive, Ladder{Term: patience})
		if how != Terminated || err != nil {
			t.Errorf("%s, %v", how, err)
		}
	}()
	tool.dies()
	p.want("ping", "pong")
	p.send("exit 0")
	arrives(t, "end", started.Done())
	arrives(t, "end of the stop", stopped)
}

func TestStopGroupSparesAStranger(t *testing.T) {
	t.Parallel()
	hub := newHub(t)
	p, started, _ := thread(t, hub)
	stranger := func() bool { return false }
	how, err := StopGroup(t.Context(), p.pid, stranger, Ladder{})
	if how != AlreadyGone || err != nil {
		t.Errorf("%s, %v", how, err)
	}
	p.want("ping", "pong")

	// The process meant goes, and its number is another's, in mid-ladder.
	p.want("ignore", "ok")
	asked := 0
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	how, err = StopGroup(ctx, p.pid, func() bool {
		if asked++; asked == 3 {
			cancel(enough) // StopGroup would wait for it to go
		}
		return asked < 3
	}, Ladder{Soft: brief, Term: brief})
	if how != Interrupted || !errors.Is(err, enough) {
		t.Errorf("%s, %v", how, err)
	}
	p.want("ping", "pong") // no SIGKILL, which would have been next
	p.kill()
	arrives(t, "end", started.Done())
}

func TestStopGroupEndsWithItsContext(t *testing.T) {
	t.Parallel()
	hub := newHub(t)
	p, started, alive := thread(t, hub)
	p.want("ignore", "ok")
	ctx, cancel := context.WithCancelCause(t.Context())
	asked := 0
	why := errors.New("shutdown")
	how, err := StopGroup(ctx, p.pid, func() bool {
		if asked++; asked == 2 {
			cancel(why)
		}
		return alive()
	}, Ladder{Soft: patience, Term: patience})
	if how != Interrupted || !errors.Is(err, why) {
		t.Errorf("%s, %v", how, err)
	}
	p.want("ping", "pong")
	p.kill()
	arrives(t, "end", started.Done())
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	hub := newHub(t)
	p, started, _ := thread(t, hub)
	p.want("start tool", "ok")
	tool := hub.peer("tool")
	must(t, Interrupt(p.pid))
	arrives(t, "end", started.Done())
	if got := started.Exit().Signal; got != "SIGINT" {
		t.Errorf("it died of %s", got)
	}
	tool.want("ping", "pong") // the process alone was signalled
	tool.kill()
	if err := Interrupt(p.pid); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("second time: %v", err)
	}
}

// A process can be gone, and waited for, between the signal that ends it and the one that
// would continue it.
func TestInterruptedBeforeItIsContinued(t *testing.T) {
	t.Parallel()
	hub := newHub(t)
	p, started, _ := thread(t, hub)
	var sent []syscall.Signal
	err := send(func(pid int, signal syscall.Signal) error {
		if sent = append(sent, signal); len(sent) == 2 {
			arrives(t, "end", started.Done())
		}
		return syscall.Kill(pid, signal)
	}, p.pid, syscall.SIGINT)
	must(t, err)
	if want := []syscall.Signal{syscall.SIGINT, syscall.SIGCONT}; !slices.Equal(sent, want) {
		t.Errorf("sent %v, want %v", sent, want)
	}
	if got := started.Exit().Signal; got != "SIGINT" {
		t.Errorf("it died of %s", got)
	}
}

func TestSignalsNeedOneTarget(t *testing.T) {
	t.Parallel()
	for _, pid := range []int{-5, -1, 0, 1} {
		if err := Interrupt(pid); err == nil || errors.Is(err, syscall.EPERM) {
			t.Errorf("interrupt %d: %v", pid, err)
		}
		asked := false
		_, err := StopGroup(t.Context(), pid, func() bool { asked = true; return false }, Ladder{})
		if err == nil || asked {
			t.Errorf("stop %d: %v", pid, err)
		}
	}
}

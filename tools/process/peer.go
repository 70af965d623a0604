//go:build linux || darwin

package process

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Peer is a command that lives on and is talked with over its standard input and
// output: a server of tools, an interpreter that is kept warm.
type Peer struct {
	Stdin  io.WriteCloser // closing it is the polite way to end the command
	Stdout io.ReadCloser

	cmd         *exec.Cmd
	grace       time.Duration
	diagnostics diagnostics
	stderr      Tail // where nobody else takes the diagnostics
	ended       chan struct{}
	exit        Exit // valid when ended is closed

	mu     sync.Mutex
	reaped bool // its number can be another's
}

// Open starts a command as a [Peer], in a process group of its own. Stdin, Stdout,
// Timeout and MaxOutput of the command are not heeded: the caller talks with it, and
// bounds what it says. Stderr takes its diagnostics; without one their end is kept.
// The caller closes the peer. On Linux it also dies when the caller is killed.
func Open(c Command) (*Peer, error) {
	childs, ours, err := pipes()
	if err != nil {
		c.started()
		c.ended()
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	cmd := exec.Command(c.Path, c.Args...) //nolint:noctx // it outlives the call that starts it
	c.prepare(cmd)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = childs[0], childs[1], childs[2]
	p := &Peer{Stdin: ours[0], Stdout: ours[1], cmd: cmd, grace: positive(c.Grace, DefaultGrace), ended: make(chan struct{})}

	p.diagnostics.pipe, p.diagnostics.to = ours[2], c.Stderr
	if c.Stderr == nil {
		p.diagnostics.to = &p.stderr
	}
	started := make(chan error)
	go func() {
		defer c.ended()
		p.run(started, func() { closeAll(childs); c.started() })
	}()
	if err := <-started; err != nil {
		closeAll(ours)
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	return p, nil
}

// run starts the command and waits for its end. Linux ties the child's death signal
// to the operating-system thread that started it, so the thread stays until then.
func (p *Peer) run(started chan<- error, closeChilds func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	closeChilds()
	started <- err
	if err != nil {
		return
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		p.diagnostics.follow()
	}()
	<-Watch(context.Background(), p.cmd.Process.Pid)
	p.mu.Lock()
	_ = unix.Kill(-p.cmd.Process.Pid, unix.SIGKILL) // what it has left; the number is its own until it is waited for
	_ = p.cmd.Wait()                                // how it ended is in its state
	p.exit, p.reaped = exitOf(p.cmd.ProcessState), true
	p.mu.Unlock()
	select {
	case <-drained: // a process that left the group can hold the pipe open
	case <-time.After(p.grace):
	}
	_ = p.diagnostics.pipe.Close()
	close(p.ended)
}

// Ended is closed when the command has ended and its group is gone.
func (p *Peer) Ended() <-chan struct{} { return p.ended }

// Exit is how the command ended; it waits for that.
func (p *Peer) Exit() Exit {
	<-p.ended
	return p.exit
}

// Stderr is the end of what the command has written to its standard error until now,
// where nobody else takes it.
func (p *Peer) Stderr() string {
	p.diagnostics.catchUp()
	return p.stderr.String()
}

// ForgetStderr has [Peer.Stderr] begin with what the command writes from now on.
func (p *Peer) ForgetStderr() {
	p.diagnostics.catchUp()
	p.stderr.forget()
}

// Close ends the command: its input is closed, its group gets SIGTERM and then
// SIGKILL, each when the step before had its time. It waits for the end.
func (p *Peer) Close() {
	_ = p.Stdin.Close()
	for _, next := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		select {
		case <-p.ended:
		case <-time.After(p.grace):
			p.signal(next)
		}
	}
	<-p.ended
	_ = p.Stdout.Close()
}

// Kill ends the command and its group at once, and waits for the end.
func (p *Peer) Kill() {
	p.signal(unix.SIGKILL)
	<-p.ended
	_ = p.Stdin.Close()
	_ = p.Stdout.Close()
}

func (p *Peer) signal(s unix.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = unix.Kill(-p.cmd.Process.Pid, s) // that it is gone is as good
	}
}

// pipes are the ends of a command's three standard streams: its own and ours.
func pipes() (childs, ours []*os.File, err error) {
	for i := range 3 {
		read, write, err := os.Pipe()
		if err != nil {
			closeAll(childs)
			closeAll(ours)
			return nil, nil, err
		}
		if i == 0 {
			childs, ours = append(childs, read), append(ours, write)
		} else {
			childs, ours = append(childs, write), append(ours, read)
		}
	}
	return childs, ours, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

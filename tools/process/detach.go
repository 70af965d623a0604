//go:build linux || darwin

package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// LockFD is the file descriptor of the life lock in a detached process.
const LockFD = 3

// Spec describes a process that outlives its starter.
type Spec struct {
	Path    string   // absolute path of the program
	Args    []string // arguments, without the program's name
	Env     []string // the whole environment, KEY=value; empty is an empty one
	Dir     string   // working folder; empty: the starter's
	LogPath string   // standard output and error are appended here; created with mode 0600
	Lock    *Lock    // handed over as [LockFD]; nil hands over nothing
}

// Started is a detached process as its starter sees it.
type Started struct {
	pid  int
	done chan struct{}
	exit Exit // written before done is closed
}

// Detach starts a process in a new session: no terminal, a process group of its
// own (its group and session have its process number), standard input empty.
// The caller still holds the lock and releases it when the start is recorded;
// the process keeps it. While the caller lives, the ended process is reaped.
func Detach(s Spec) (*Started, error) {
	if !filepath.IsAbs(s.Path) {
		return nil, fmt.Errorf("start a detached process: the program %q is not an absolute path", s.Path)
	}
	cmd := &exec.Cmd{
		Path:        s.Path,
		Args:        append([]string{s.Path}, s.Args...),
		Env:         append([]string{}, s.Env...), // nil would mean the starter's
		Dir:         s.Dir,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if s.Lock != nil {
		if s.Lock.released() {
			return nil, fmt.Errorf("start a detached process: %w", ErrReleased)
		}
		cmd.ExtraFiles = []*os.File{s.Lock.file} // the first extra file is descriptor 3
	}
	log, err := os.OpenFile(s.LogPath, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of a detached process: %w", err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	err = cmd.Start()
	_ = log.Close() // only the child writes to it
	if err != nil {
		return nil, fmt.Errorf("start a detached process: %w", err)
	}
	if s.Lock != nil {
		s.Lock.handedOver.Store(true)
	}
	started := &Started{pid: cmd.Process.Pid, done: make(chan struct{})}
	go started.reap(cmd)
	return started, nil
}

// reap waits for the end and collects the exit status. It waits with [Watch]
// first, because Wait would keep an operating-system thread for as long as the
// process lives.
func (s *Started) reap(cmd *exec.Cmd) {
	<-Watch(context.Background(), s.pid)
	_ = cmd.Wait() // the state says more than the error
	s.exit = exitOf(cmd.ProcessState)
	close(s.done)
}

// PID returns the process number.
func (s *Started) PID() int { return s.pid }

// Done returns a channel that is closed when the process has ended and its exit
// status is known.
func (s *Started) Done() <-chan struct{} { return s.done }

// Exit returns how the process ended. It is valid after Done.
func (s *Started) Exit() Exit { return s.exit }

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

// firstExtra is the descriptor of the first extra file of a command, those
// before are the standard ones.
const firstExtra = 3

// Spec describes a process that outlives its starter.
type Spec struct {
	Path    string   // absolute path of the program
	Args    []string // arguments, without the program's name
	Env     []string // the whole environment, KEY=value; empty is an empty one
	Dir     string   // working folder; empty: the starter's
	LogPath string   // standard output and error are appended here; created with mode 0600
	Lock    *Lock    // handed over as [LockFD]; nil hands over nothing
	// Secrets, NAME=value each, are handed over as [SecretsFD]; nil hands over
	// nothing. The environment of a process is no place for them: every other
	// process of the user can read it.
	Secrets []string
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
	if s.Lock != nil && s.Lock.released() {
		return nil, fmt.Errorf("start a detached process: %w", ErrReleased)
	}
	log, err := os.OpenFile(s.LogPath, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of a detached process: %w", err)
	}
	defer func() { _ = log.Close() }() // only the child writes to it
	cmd.Stdout, cmd.Stderr = log, log
	send, err := s.handOver(cmd)
	if err != nil {
		return nil, err
	}
	err = cmd.Start()
	send()
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

// handOver gives the command its extra descriptors, the first of which is 3. The
// returned function is called when the command has been started, or could not be.
func (s Spec) handOver(cmd *exec.Cmd) (send func(), err error) {
	cmd.ExtraFiles = make([]*os.File, 2)
	if s.Lock != nil {
		cmd.ExtraFiles[LockFD-firstExtra] = s.Lock.file
	}
	if s.Secrets == nil {
		return func() {}, nil
	}
	cmd.ExtraFiles[SecretsFD-firstExtra], send, err = secretsPipe(s.Secrets)
	return send, err
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

package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// oneSignal is how long further signals mean what the first one meant. Programs like
// timeout signal a command and then its group, so it gets two of them at once.
const oneSignal = time.Second

// interruptible is cancelled by SIGINT, SIGTERM and the closing of the
// terminal, with the signal as cause. The command then puts in order what it leaves,
// such as a thread that nobody waits for any more, and signals that come within one of
// the first do not disturb that. A later one ends the program at once, where second has no
// other meaning for it. nohup ignores the closing of the terminal, and means this program
// alone.
func interruptible(one time.Duration, second *secondSignal) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	ends := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !process.OutliveHangup() {
		ends = append(ends, syscall.SIGHUP)
	}
	signals, over := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, ends...)
	go func() {
		defer signal.Stop(signals)
		select {
		case s := <-signals:
			cancel(&thread.SignalError{Signal: signalName(s)})
		case <-over:
			return
		}
		select {
		case <-time.After(one):
		case <-over:
			return
		}
		for len(signals) > 0 {
			<-signals
		}
		if do := second.meaning(); do != nil {
			select {
			case <-signals:
				do()
			case <-over:
				return
			}
			<-over // the command ends now
		}
	}()
	return ctx, func() {
		cancel(nil)
		close(over)
	}
}

// secondSignal is what a second signal means to a command that goes on after the first.
type secondSignal struct {
	mu sync.Mutex
	do func()
}

// means has do called when the second signal comes.
func (s *secondSignal) means(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.do = do
}

func (s *secondSignal) meaning() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.do
}

func signalName(s os.Signal) string {
	if number, ok := s.(syscall.Signal); ok {
		return unix.SignalName(number)
	}
	return s.String()
}

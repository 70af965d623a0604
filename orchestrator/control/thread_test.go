package control

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/spawn"
	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// puppet is a thread's process that does what a test orders, one order a line,
// each answered with a line. What it does to row, ledger and files is what the
// real one does.
type puppet struct {
	ctx      context.Context //nolint:containedctx // lives as long as the process
	id       thread.ID
	lock     *process.Lock
	store    *sqlite.Store
	finisher *finish.Finisher
	words    *transcript.Writer
	conn     net.Conn // nil: nobody gives orders
}

// playThread is the process behind "thread run …" in these tests. Without a
// socket it completes at once.
func playThread(args []string) error {
	flags := flag.NewFlagSet("thread run", flag.ContinueOnError)
	id := flags.String("thread-id", "", "")
	project := flags.String("project", "", "")
	flags.Bool("pre-registered", false, "")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	p := &puppet{ctx: context.Background(), id: thread.ID(*id)}
	if err := p.open(*project); err != nil {
		return err
	}
	if os.Getenv(socketVar) == "" {
		return errors.Join(p.claim(), p.end(thread.Completed))
	}
	var err error
	if p.conn, err = net.Dial("unix", os.Getenv(socketVar)); err != nil {
		return err
	}
	if err := p.say(p.id, os.Getpid()); err != nil {
		return err
	}
	orders := make(chan string)
	go func() {
		lines := bufio.NewScanner(p.conn)
		for lines.Scan() {
			orders <- lines.Text()
		}
		close(orders)
	}()
	for {
		select {
		case <-signals:
			return p.end(thread.Cancelled)
		case order, ok := <-orders:
			if !ok {
				os.Exit(0) // the test is over
			}
			if err := p.obey(order); err != nil {
				return err
			}
		}
	}
}

// playTool is what a thread's tool has started. It does nothing, until a test
// has surely ended.
func playTool([]string) error {
	time.AfterFunc(giveUp, func() { os.Exit(1) })
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	<-signals
	return nil
}

func (p *puppet) open(project string) (err error) {
	state := folder.StateDir(project)
	if p.lock, err = process.Inherit(spawn.LockFD, folder.Of(state, p.id).Lock()); err != nil {
		return err
	}
	if p.store, err = sqlite.Open(p.ctx, state, sqlite.Options{}); err != nil {
		return err
	}
	p.finisher = &finish.Finisher{Store: p.store, StateDir: state, Now: time.Now}
	p.words, err = p.finisher.OpenTranscript(p.id)
	return err
}

func (p *puppet) say(words ...any) error {
	_, err := fmt.Fprintln(p.conn, words...)
	return err
}

func (p *puppet) claim() error {
	_, err := p.store.Apply(p.ctx, store.Claimed(p.id, os.Getpid(), "host", time.Now()))
	return err
}

func (p *puppet) outcome(state thread.State) (thread.Outcome, thread.Cost, error) {
	rec, err := p.store.Get(p.ctx, p.id)
	o := thread.Outcome{State: state, Result: "result of " + string(p.id)}
	if state != thread.Completed {
		o = thread.Outcome{State: state, Error: &thread.Problem{Code: "test", Message: "ended as told"}}
	}
	return o, rec.Cost, err
}

// end settles the thread. It says when the row was terminal.
func (p *puppet) end(state thread.State) error {
	p.finisher.Reached = func(s thread.Step) {
		if s == finish.StepRegistry && p.conn != nil {
			_ = p.say(time.Now().UnixNano())
		}
	}
	o, cost, err := p.outcome(state)
	if err == nil {
		_, err = p.finisher.Finish(p.ctx, p.id, p.words, o, cost)
	}
	if err == nil && state != thread.Completed {
		os.Exit(1)
	}
	return err
}

func (p *puppet) obey(order string) error {
	word, argument, _ := strings.Cut(order, " ")
	n, _ := strconv.Atoi(argument)
	var err error
	switch word {
	case "claim":
		if err = p.claim(); errors.Is(err, thread.ErrSettled) {
			return p.end(thread.Cancelled)
		}
	case "complete":
		if err := p.end(thread.Completed); err != nil {
			return err
		}
		os.Exit(0)
	case "stubborn":
		signal.Ignore(os.Interrupt, syscall.SIGTERM)
	case "spend":
		cost := thread.Cost{Turns: 1, Spend: thread.Micros(n)}
		err = errors.Join(p.store.Report(p.ctx, p.id, cost.Spend, time.Now()), p.store.RecordCost(p.ctx, p.id, cost, 0))
	case "ledger": // the row is left behind
		err = p.store.Report(p.ctx, p.id, thread.Micros(n), time.Now())
	case "decide": // the outcome reaches the transcript and nothing else
		o, cost, outcomeErr := p.outcome(thread.Completed)
		_, finishErr := p.words.Finish(o, cost)
		err = errors.Join(outcomeErr, finishErr)
	case "tool": // in its session, in a group of its own, and not waited for
		cmd := exec.CommandContext(p.ctx, os.Args[0], "tool")
		cmd.Env, cmd.SysProcAttr = []string{argument}, &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			return err
		}
		return p.say(cmd.Process.Pid)
	case "panic":
		panic("told to")
	case "give-up": // as a process that fails before its loop
		return errors.Join(p.lock.Release(), errors.New("told to give up"))
	case "ping":
		return p.say(time.Now().UnixNano())
	default:
		return fmt.Errorf("bug; no order %q", order)
	}
	return errors.Join(err, p.say("done"))
}

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
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/spawn"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/handoff"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// puppet is a thread's process that does what a test orders, one order a line,
// each answered with a line. It does to row, ledger and files what the real one
// does.
type puppet struct {
	ctx   context.Context //nolint:containedctx // lives as long as the process
	id    thread.ID
	hold  life.Hold
	c     *Controller
	words *transcript.Writer
	made  handoff.Successor
	turn  int // of the conversation, the last one
	// pauseAt is the step of its end at which the process waits.
	pauseAt thread.Crashpoint
	done    bool     // with its work: it completes when it is told to stop
	conn    net.Conn // nil: nobody gives orders
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
		if err := p.claim(); err != nil {
			return err
		}
		return p.end(thread.Completed)
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
			if p.done {
				return p.end(thread.Completed)
			}
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

// playTool is what a thread's tool has started. It does nothing, whatever
// signals come, until a test has surely ended.
func playTool([]string) error {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	<-time.After(giveUp)
	return nil
}

// startTool starts a process in a group or session of its own, with an
// environment, and says its number.
func (p *puppet) startTool(how []string) error {
	cmd := exec.CommandContext(p.ctx, os.Args[0], "tool")
	cmd.Env = how[1:]
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: how[0] == "group", Setsid: how[0] == "session"}
	if err := cmd.Start(); err != nil {
		return err
	}
	return p.say(cmd.Process.Pid)
}

func (p *puppet) open(project string) (err error) {
	state := placetest.Dir(project)
	handed, err := process.InheritSecrets()
	if err != nil {
		return err
	}
	key := life.Key{Thread: p.id, Run: spawn.Inherited(handed).Run}
	if p.hold, err = (&life.Local{Home: folder.Home{Dir: state}.Always()}).Adopt(key); err != nil {
		return err
	}
	env := []string{socketVar + "=" + os.Getenv(socketVar), "GORACE=" + os.Getenv("GORACE")}
	if p.c, err = openController(p.ctx, project, env); err != nil {
		return err
	}
	p.c.Threads.Parent, p.c.Threads.Crashpoints = p.id, dieAtPoint
	p.words, err = p.c.Threads.Finisher.OpenTranscript(p.id, "")
	return err
}

func (p *puppet) say(words ...any) error {
	_, err := fmt.Fprintln(p.conn, words...)
	return err
}

func (p *puppet) claim() error {
	rec, err := storetest.As(p.c.Threads.Store).Apply(p.ctx, store.Claimed(p.id, thread.Process(process.Here("host").Self()), time.Now()))
	if err != nil {
		return err
	}
	dir := p.folder(p.id)
	meta, err := dir.ReadMeta(p.c.Threads.Records.Seal())
	if err != nil {
		return err
	}
	meta.Status = rec.Status
	return dir.WriteMeta(meta, p.c.Threads.Records.Seal())
}

func (p *puppet) outcome(state thread.State) (thread.Outcome, thread.Cost, error) {
	rec, err := p.c.Threads.Store.Get(p.ctx, p.id)
	o := thread.Outcome{State: state, Result: "result of " + string(p.id)}
	if state != thread.Completed {
		o = thread.Outcome{State: state, Error: &thread.Problem{Code: "test", Message: "ended as told"}}
	}
	return o, rec.Cost, err
}

// end settles the thread, says when the row was terminal, and starts the next in
// line. It leaves its children to the test.
func (p *puppet) end(state thread.State) error {
	p.c.Threads.Finisher.Crashpoints = func(s thread.Crashpoint) {
		if s == p.pauseAt {
			p.pause()
		}
		if s == finish.CrashRegistry && p.conn != nil {
			_ = p.say(time.Now().UnixNano())
		}
	}
	var err error
	if state != thread.Completed {
		err = p.c.Threads.Life.Leftovers(p.ctx, p.id)
	}
	o, cost, outcomeErr := p.outcome(state)
	if err = errors.Join(err, outcomeErr); err == nil {
		_, err = p.c.Threads.Finisher.Finish(p.ctx, p.runner(), p.words, o, cost)
	}
	if err == nil {
		err = errors.Join(p.hold.Release(), p.c.Queue.Dispatch(p.ctx))
	}
	if err == nil && state != thread.Completed {
		os.Exit(1)
	}
	return err
}

// pause says so, and waits until somebody lets it go on by a signal.
func (p *puppet) pause() {
	goesOn := make(chan os.Signal, 1)
	signal.Notify(goesOn, syscall.SIGCONT)
	_ = p.say("paused")
	<-goesOn
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
	case "end": // and not the process
		return p.end(thread.Completed)
	case "work": // to its end, and not further
		p.done = true
	case "stubborn":
		signal.Ignore(os.Interrupt, syscall.SIGTERM)
	case "spend":
		cost := thread.Cost{Turns: 1, Spend: thread.Micros(n)}
		err = errors.Join(storetest.As(p.c.Threads.Store).Report(p.ctx, p.id, cost.Spend, time.Now()), storetest.As(p.c.Threads.Store).RecordCost(p.ctx, p.id, cost, 0))
	case "ledger": // the row is left behind
		err = storetest.As(p.c.Threads.Store).Report(p.ctx, p.id, thread.Micros(n), time.Now())
	case "decide": // the outcome reaches the transcript and nothing else
		o, cost, outcomeErr := p.outcome(thread.Completed)
		_, finishErr := p.words.Finish(o, cost)
		err = errors.Join(outcomeErr, finishErr)
	case "tool": // not waited for, and its output closed
		return p.startTool(strings.Fields(argument))
	case "fork": // waits for the child, and says how it came out
		got, err := Threads{p.c}.Start(p.ctx, action.Caller{InThread: true, Env: tool.Env{ThreadID: p.id}},
			action.StartRequest{Directive: argument})
		if err != nil {
			return err
		}
		return p.say(got.(view.Started).Status)
	case "wait": // for a thread that is not below it
		_, err := p.c.Wait(p.ctx, WaitRequest{ThreadIDs: []thread.ID{thread.ID(argument)}, Timeout: giveUp})
		return errors.Join(err, p.say("done"))
	case "say": // one exchange with a model
		err = p.converse(argument)
	case "count": // an exchange of which the provider counts so many tokens
		err = p.counted(int64(n))
	case "call": // of a tool, which does not answer
		err = p.call(argument)
	case "started": // a child, by a call
		err = p.words.Append(thread.EventChildThreadStarted, transcript.ChildStarted{ThreadID: thread.ID(argument), CallID: "c1"})
	case "hear": // the first of its messages, and not yet say so
		err = p.hear()
	case "mutter": // without a checkpoint
		err = p.mutter(argument)
	case "make": // a successor, and not yet the end
		p.made, err = p.makeSuccessor()
	case "give-over": // the successor is not started after all
		p.made.GiveUp(p.ctx, errors.New("told to"))
	case "hand-over":
		return p.handOver()
	case "die-at": // a step of what comes next
		err = os.Setenv(pointVar, argument)
	case "pause-at": // a step of its end
		p.pauseAt = thread.Crashpoint(argument)
	case "panic":
		panic("told to")
	case "give-up": // as a process that fails before its loop
		return errors.Join(p.hold.Release(), errors.New("told to give up"))
	case "hold": // the registry, in the middle of a transaction
		err = p.holdRegistry()
	case "ping":
		return p.say(time.Now().UnixNano())
	default:
		return fmt.Errorf("bug; no order %q", order)
	}
	return errors.Join(err, p.say("done"))
}

// runner is what the process writes by.
func (p *puppet) runner() store.Runner {
	rec, _ := p.c.Threads.Store.Get(p.ctx, p.id) // without a row the write says so
	return p.c.Threads.Store.Runner(p.id, rec.Run)
}

func (p *puppet) folder(id thread.ID) folder.Folder { return homeOf(p.c).Of(id) }

// holdRegistry takes the turn to write to the registry and keeps it.
func (p *puppet) holdRegistry() error {
	turns, err := sharedfile.OpenQueue(filepath.Join(homeOf(p.c).Dir, "registry.lock"), sharedfile.Options{})
	if err != nil {
		return err
	}
	if _, err := turns.Acquire(p.ctx); err != nil {
		return err
	}
	_ = p.say("held")
	select {}
}

package subprocess

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/tools/executor/chain"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// workers are the processes that are kept warm: one for each tool of a thread, so that
// nothing leaks from one tool to another. The zero value has none.
type workers struct {
	mu     sync.Mutex
	by     map[string]*worker
	closed bool
}

// confining bounds what a command may reach, right before it is started.
type confining func(*process.Command) error

// worker is a process that answers one call after the other. Each message is its
// length in four bytes and JSON.
type worker struct {
	among *workers
	turn  chan struct{} // has one element during a call
	made  [sha256.Size]byte
	peer  *process.Peer // nil before the first call, and when it had to be killed
	// offline says that the process reaches no network.
	offline bool
}

// call has the worker of a tool answer, which is started, or replaced when the tool is
// another one by now.
func (w *workers) call(ctx context.Context, plan *chain.Plan, command process.Command, confine confining) (any, error) {
	one, err := w.of(plan)
	if err != nil {
		return nil, err
	}
	select {
	case one.turn <- struct{}{}:
		defer func() { <-one.turn }()
	case <-ctx.Done():
		return nil, tool.Faultf(tool.CodeCancelled, "%s was not called: the call was cancelled while it waited for an earlier one", plan.Chain.Tool().ID)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, command.Timeout, errTimeout)
	defer cancel()
	if err := one.ready(plan, command, confine); err != nil { //nolint:contextcheck // the process outlives the call
		return nil, err
	}
	reply, err := one.ask(ctx, command.Stdin)
	o := outcome{id: plan.Chain.Tool().ID, env: plan.Call, command: command, stderr: strings.ToValidUTF8(one.peer.Stderr(), "\uFFFD")}
	if err != nil {
		one.drop(&o)
		return nil, o.notAnswered(ctx, err)
	}
	value, err := o.replied(reply)
	if err != nil && one.offline {
		err = o.offline(plan.Chain.Tool().Ext, err)
	}
	return value, err
}

var errTimeout = errors.New("the tool's time is over")

// of is the worker of the tool of a plan.
func (w *workers) of(plan *chain.Plan) (*worker, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, threadEnded()
	}
	if w.by == nil {
		w.by = map[string]*worker{}
	}
	key := string(plan.Call.ThreadID) + " " + plan.Chain.Tool().ID
	if w.by[key] == nil {
		w.by[key] = &worker{among: w, turn: make(chan struct{}, 1)}
	}
	return w.by[key], nil
}

func (w *workers) isClosed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

func threadEnded() error { return tool.Faultf(tool.CodeCancelled, "the thread has ended") }

// ready sees to it that a process runs what the plan says, and that what it said about
// earlier calls is not told of this one.
func (w *worker) ready(plan *chain.Plan, command process.Command, confine confining) error {
	if w.among.isClosed() { // this call has waited for its turn, and nobody ends what it would start
		return threadEnded()
	}
	made := identity(plan, command)
	if w.peer != nil {
		select {
		case <-w.peer.Ended():
		default:
			if w.made == made {
				w.peer.ForgetStderr()
				return nil
			}
		}
		w.peer.Kill()
		w.peer = nil
	}
	if err := confine(&command); err != nil {
		return err
	}
	peer, err := process.Open(command)
	if err != nil {
		return notStarted(plan.Chain.Tool().ID, command, err)
	}
	w.peer, w.made, w.offline = peer, made, plan.Offline
	return nil
}

// identity tells processes apart by everything that made them.
func identity(plan *chain.Plan, command process.Command) [sha256.Size]byte {
	made := []any{command.Path, command.Args, command.Env, command.Dir, plan.Files}
	for _, e := range plan.Chain.Elements {
		made = append(made, e.Path, e.Hash)
	}
	raw, err := json.Marshal(made) // maps in the order of their keys
	if err != nil {
		panic(fmt.Sprintf("bug; texts do not marshal: %v", err))
	}
	return sha256.Sum256(raw)
}

// ask sends a call and waits for the reply.
func (w *worker) ask(ctx context.Context, call []byte) ([]byte, error) {
	type answer struct {
		reply []byte
		err   error
	}
	answered := make(chan answer, 1)
	peer := w.peer
	go func() {
		reply, err := exchange(peer, call)
		answered <- answer{reply, err}
	}()
	select {
	case a := <-answered:
		return a.reply, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func exchange(peer *process.Peer, call []byte) ([]byte, error) {
	message := binary.BigEndian.AppendUint32(nil, uint32(len(call))) //nolint:gosec // parameters are a few megabytes at most
	if _, err := peer.Stdin.Write(append(message, call...)); err != nil {
		return nil, err
	}
	var head [4]byte
	if _, err := io.ReadFull(peer.Stdout, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxOutput {
		return nil, errTooLong
	}
	reply := make([]byte, size)
	_, err := io.ReadFull(peer.Stdout, reply)
	return reply, err
}

// drop ends a process that did not answer as it should. The next call gets another.
func (w *worker) drop(o *outcome) {
	w.peer.Kill()
	exit := w.peer.Exit()
	o.result.ExitCode, o.result.Signal = exit.Code, exit.Signal
	o.stderr = strings.ToValidUTF8(w.peer.Stderr(), "\uFFFD")
	w.peer = nil
}

// notAnswered is the fault of a call that got no reply.
func (o outcome) notAnswered(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	o.result.TimedOut = errors.Is(cause, errTimeout)
	o.result.Cancelled = cause != nil && !o.result.TimedOut
	switch {
	case errors.Is(err, errTooLong):
		return o.tooLong()
	case cause != nil:
		_, err = o.decode()
		return err
	}
	return o.failed(nil)
}

// replied is the result in a reply.
func (o outcome) replied(reply []byte) (any, error) {
	value, _ := parse(reply)
	object, _ := value.(map[string]any)
	if result, ok := object["result"]; ok {
		return result, refusal(o.id, result)
	}
	why, _ := object["error"].(string)
	return nil, o.with(tool.Faultf(tool.CodeToolFailed, "%s failed: %s", o.id, why))
}

// close ends all of them.
func (w *workers) close() error {
	w.mu.Lock()
	w.closed = true
	all := w.by
	w.by = nil
	w.mu.Unlock()
	for _, one := range all {
		one.turn <- struct{}{}
		if one.peer != nil {
			one.peer.Kill()
			one.peer = nil
		}
		<-one.turn
	}
	return nil
}

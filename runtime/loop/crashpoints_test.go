package loop

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// everyStep is a thread that comes to every step: it calls tools, starts a child,
// reaches a limit, waits to be told what to do, and does not complete. Its first call costs 120, its second 240.
const everyStep = `
turns:
  - match: {turn: 1}
    tool_calls:
      - {name: test_echo, input: {word: a}}
      - {name: rye_execute, input: {item_type: directive, item_id: test/task, async: true}}
    usage: {input_tokens: 100, output_tokens: 10}
  - {text: I will not., stop_reason: refusal, usage: {input_tokens: 200, output_tokens: 20}}
`

var everyStepJob = job{
	capabilities: []string{"rye.execute.directive.test.task", "rye.execute.tool.test.*"},
	onLimit:      item.OnLimitAsk, limits: func(l *thread.Limits) { l.Turns = 1 },
}

// crashHooks fire behind each turn, and behind the end.
const stepHooks = `hooks:
  - {id: step, event: after_step, action: {primary: execute, item_id: rye/agent/threads/internal/control, params: {action: continue}}}
  - {id: end, event: after_complete, action: {primary: search, params: {query: x}}}
`

// passingOn are the steps of a thread that hands over, and no other comes to them.
var passingOn = []thread.Crashpoint{CrashSummary, CrashEdited, CrashSuccessor, CrashStarted}

// handingOver prepares a thread that comes to the steps of a handoff. Its one call
// costs 180 000 + 2*100 micro-dollars.
func (h *house) handingOver() thread.ID {
	h.script(filling(nearlyFull))
	handsOver(h)
	return h.register(job{})
}

const handingOverSpent = nearlyFull + 100

// approvalSteps are those of a handoff that somebody has to allow, who gives it
// another summary.
var approvalSteps = []thread.Crashpoint{CrashSummary, CrashAsked, CrashTold, CrashEdited, CrashSuccessor, CrashDecided, CrashStarted}

// asksFirst lets the threads of the house ask before they hand over, and be answered. An
// answer that a full disk refuses is given again when there is room.
func (h *house) asksFirst(id thread.ID) {
	h.settings.Continuation.Approval = config.ApprovalAsk
	h.settings.OnLimit.DeadlineSeconds = 600
	h.finisher.KnowledgeDir = filepath.Join(h.project, ".ai", "knowledge")
	ctx, cancel := context.WithCancel(h.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if q := h.askedBy(ctx, id); q.ID != "" {
			answer := thread.Answer{Decision: thread.Accept, Summary: "It is half done.", By: "Ada", At: time.Now()}
			if _, err := h.store.Answer(ctx, q.ID, answer); err != nil && h.makeRoom != nil {
				h.makeRoom()
				_, _ = h.store.Answer(ctx, q.ID, answer)
			}
		}
	}()
	h.t.Cleanup(func() {
		cancel()
		<-done
	})
}

// cameTo are the steps that a thread comes to, each once.
func cameTo(t *testing.T, d Deps) []thread.Crashpoint {
	t.Helper()
	var mu sync.Mutex
	var came []thread.Crashpoint
	d.Crashpoints = func(s thread.Crashpoint) {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(came, s) {
			came = append(came, s)
		}
	}
	if _, err := Run(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	return came
}

// TestCrashpoints: threads come to the crash points that are listed, in their order.
func TestCrashpoints(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	h := newHouse(t)
	h.script(everyStep)
	h.write(hooksFile, stepHooks)
	id := h.register(everyStepJob)
	h.post(id, "one", "two")
	came := cameTo(t, h.deps(id))
	want := slices.DeleteFunc(Crashpoints(), func(s thread.Crashpoint) bool { return slices.Contains(passingOn, s) })
	// The calls of a turn run at the same time: one may have its result before
	// another has started a child.
	for _, list := range [][]thread.Crashpoint{came, want} {
		from := slices.Index(list, CrashCall)
		slices.Sort(list[from : from+3])
	}
	if !slices.Equal(came, want) {
		t.Errorf("came to %q\nwant    %q", came, want)
	}
	h = newHouse(t)
	came = cameTo(t, h.deps(h.handingOver()))
	if got := came[slices.Index(came, CrashSummary):]; !slices.Equal(got, []thread.Crashpoint{CrashSummary, CrashSuccessor, CrashDecided, CrashStarted}) {
		t.Errorf("a handoff came to %q", got)
	}
	h = newHouse(t)
	id = h.handingOver()
	h.asksFirst(id)
	if got := cameTo(t, h.deps(id)); !slices.Equal(got[slices.Index(got, CrashSummary):], approvalSteps) {
		t.Errorf("a handoff that was allowed came to %q", got)
	}
	if listed := slices.DeleteFunc(Crashpoints(), func(s thread.Crashpoint) bool { return !slices.Contains(came, s) }); !slices.Equal(came, listed) {
		t.Errorf("a handoff came to %q\nlisted are        %q", came, listed)
	}
}

// The test binary is also the process that dies: it finds in these variables
// where.
const (
	dieAtVariable   = "LOOP_TEST_DIE_AT"
	projectVariable = "LOOP_TEST_PROJECT"
	userVariable    = "LOOP_TEST_USER"
	threadVariable  = "LOOP_TEST_THREAD"

	approvalVariable = "LOOP_TEST_APPROVAL"
)

// TestDeath kills a thread's process at each step. The thread is settled as
// recovery does it: in error, with what was spent on record, nothing reserved
// and a transcript that verifies.
func TestDeath(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	if os.Getenv(dieAtVariable) != "" {
		die(t)
		return
	}
	spent := map[thread.Crashpoint]thread.Micros{ // 0 before the first call
		CrashLedger: 120, CrashRegistry: 120, CrashAnswer: 120, CrashCall: 120, CrashChild: 120, CrashResult: 120,
		CrashHook: 120, CrashCheckpoint: 120,
		CrashAsked: 120, CrashTold: 120,
		CrashEndReading: 360, CrashDecided: 360, CrashChildren: 360,
	}
	type death struct {
		point    thread.Crashpoint
		approval bool
	}
	var deaths []death
	for _, point := range Crashpoints() {
		if point != CrashEdited {
			deaths = append(deaths, death{point, false})
		}
	}
	for _, point := range approvalSteps {
		deaths = append(deaths, death{point, true})
	}
	for _, d := range deaths {
		point, passes := d.point, d.approval || slices.Contains(passingOn, d.point)
		t.Run(fmt.Sprintf("%s approval=%t", point, d.approval), func(t *testing.T) {
			t.Parallel()
			user := t.TempDir()
			key, err := sign.Generate(user, false, rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			h := openHouse(t, t.TempDir(), key)
			var id thread.ID
			if passes {
				id = h.handingOver()
			} else {
				h.script(everyStep)
				h.write(hooksFile, stepHooks)
				id = h.register(everyStepJob)
				h.post(id, "one", "two")
			}
			cmd := exec.Command(os.Args[0], "-test.run=^TestDeath$")
			cmd.Env = append(os.Environ(), dieAtVariable+"="+string(point), projectVariable+"="+h.project,
				userVariable+"="+user, threadVariable+"="+string(id), approvalVariable+"="+strconv.FormatBool(d.approval))
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("the process ended with %v\n%s", err, out)
			}
			if point == CrashAfter || point == CrashStarted { // the end stands
				rec, err := h.store.Get(t.Context(), id)
				if err != nil || (point == CrashAfter) != (rec.Status == thread.Error) || (point == CrashStarted) != (rec.Status == thread.Continued) {
					t.Errorf("%+v, %v", rec, err)
				}
				h.checkAgreement(t.Context(), rec)
				return
			}
			want := spent[point]
			if passes {
				want = handingOverSpent
			}
			rec := h.settleDead(id)
			if rec.Status != thread.Error || rec.Outcome.Error.Code != "process_died" || rec.Cost.Spend != want {
				t.Errorf("%s %+v, spent %s, want %s", rec.Status, rec.Outcome.Error, rec.Cost.Spend, want)
			}
			h.checkAgreement(t.Context(), rec)
			if !passes {
				h.checkMessages(id, "one", "two")
			}
		})
	}
}

// die runs a thread of another process's house up to a step.
func die(t *testing.T) {
	key, err := sign.Load(os.Getenv(userVariable))
	if err != nil {
		t.Fatal(err)
	}
	h := openHouse(t, os.Getenv(projectVariable), key)
	handsOver(h)
	if os.Getenv(approvalVariable) == "true" {
		h.asksFirst(thread.ID(os.Getenv(threadVariable)))
	}
	d := h.deps(thread.ID(os.Getenv(threadVariable)))
	d.Crashpoints = func(s thread.Crashpoint) {
		if string(s) == os.Getenv(dieAtVariable) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal need not have come when Kill returns
		}
	}
	_, err = Run(t.Context(), d)
	t.Fatalf("it did not come to the step: %v", err)
}

// settleDead settles a thread that died before it had decided how to end.
func (h *house) settleDead(id thread.ID) thread.Record {
	h.t.Helper()
	path := h.folder(id).Transcript()
	if decided, _, err := transcript.LastOutcome(records.File(path)); err != nil || decided != nil {
		h.t.Fatalf("the transcript has an outcome: %+v, %v", decided, err)
	}
	rec := h.settle(id)
	all := strings.Join(h.eventTypes(id), " ")
	torn := slices.ContainsFunc(events[transcript.ErrorClassified](h, id, thread.EventErrorClassified), func(e transcript.ErrorClassified) bool {
		return e.Code == "torn_line"
	})
	if torn || !strings.HasSuffix(all, "thread_error checkpoint") {
		h.t.Errorf("events %s", all)
	}
	return rec
}

// settle ends a thread whose process is gone, as recovery does.
func (h *house) settle(id thread.ID) thread.Record {
	h.t.Helper()
	rec, err := h.store.Get(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	budget, err := h.store.Budget(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	rec.Cost.Spend = max(rec.Cost.Spend, budget.Own) // the ledger is told first
	w, err := h.finisher.OpenTranscript(id, "")
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	died := thread.Outcome{State: thread.Error, Error: &thread.Problem{Code: "process_died", Message: "died"}}
	if rec, err = h.finisher.Finish(h.t.Context(), h.store.Runner(id, ""), w, died, rec.Cost); err != nil {
		h.t.Fatal(err)
	}
	return rec
}

// eventTypes are those of a transcript, in order.
func (h *house) eventTypes(id thread.ID) []string {
	h.t.Helper()
	var types []string
	for e, err := range transcript.Events(records.File(h.folder(id).Transcript())) {
		if err != nil {
			h.t.Fatal(err)
		}
		types = append(types, string(e.Type))
	}
	return types
}

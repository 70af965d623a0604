package main_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/orchestrator/fanout"
	"github.com/rye-mcp/rye-mcp/orchestrator/recovery"
	"github.com/rye-mcp/rye-mcp/orchestrator/steer"
	"github.com/rye-mcp/rye-mcp/orchestrator/stop"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/loop"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	home "github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
)

// allCrashpoints are the crash points of everything that must survive a crash.
func allCrashpoints() []thread.Crashpoint {
	return slices.Concat(home.Crashpoints(), control.Crashpoints(), recovery.Crashpoints(), loop.Crashpoints(), finish.Crashpoints())
}

// walked is the project of the walk: parents with children, tools and hooks, one
// of which starts a thread when a family has ended.
const walked = `
-- .ai/directives/family.md --
` + "```xml" + `
<directive name="family" version="1.0.0">
  <metadata>
    <model tier="fast" />
    <limits spend="1.00" spawns="3" />
    <permissions>
      <execute><directive>member</directive><directive>quick</directive><tool>rye.file-system.ls</tool></execute>
    </permissions>
  </metadata>
</directive>
` + "```" + `

Found a family.
-- .ai/directives/member.md --
` + "```xml" + `
<directive name="member" version="1.0.0">
  <metadata>
    <model tier="fast" />
    <limits spend="0.20" />
    <permissions><execute><tool>rye.file-system.ls</tool></execute></permissions>
  </metadata>
</directive>
` + "```" + `

Belong to it.
-- .ai/directives/clan.md --
` + "```xml" + `
<directive name="clan" version="1.0.0">
  <metadata>
    <model tier="fast" />
    <limits spend="1.00" spawns="3" />
    <permissions><execute><directive>stay</directive></execute></permissions>
  </metadata>
</directive>
` + "```" + `

Found a clan that stays.
-- .ai/directives/stay.md --
` + "```xml" + `
<directive name="stay" version="1.0.0"><metadata><model tier="fast" /><limits spend="0.20" /></metadata></directive>
` + "```" + `

Stay.
-- .ai/directives/quick.md --
` + "```xml" + `
<directive name="quick" version="1.0.0"><metadata><model tier="fast" /><limits spend="0.20" /></metadata></directive>
` + "```" + `

Be quick.
-- .ai/directives/curious.md --
` + "```xml" + `
<directive name="curious" version="1.0.0">
  <metadata>
    <model tier="fast" />
    <limits turns="1" spend="0.20" on_limit="ask" />
    <permissions><execute><tool>rye.file-system.ls</tool></execute></permissions>
  </metadata>
</directive>
` + "```" + `

Be curious.
-- .ai/directives/long.md --
` + "```xml" + `
<directive name="long" version="1.0.0">
  <metadata>
    <model tier="fast" />
    <limits spend="0.20" />
    <permissions><execute><tool>rye.file-system.ls</tool></execute></permissions>
  </metadata>
</directive>
` + "```" + `

Take long.
-- .ai/config/agent/providers/anthropic.yaml --
models:
  claude-haiku-4-5: {context_window: 20000}
-- .ai/config/agent/resilience.yaml --
on_limit: {deadline_seconds: 0.1, default: finish}
-- .ai/config/agent/hooks.yaml --
hooks:
  - id: step
    event: after_step
    condition: {path: thread_id, op: regex, value: ^family}
    action: {primary: execute, item_id: rye/agent/threads/internal/control, params: {action: continue}}
  - id: after
    event: after_complete
    condition: {path: thread_id, op: regex, value: ^family}
    action: {primary: execute, item_type: directive, item_id: quick}
-- .ai/config/agent/agent.yaml --
threads: {max_running: %d}
-- model.yaml --
turns:
  - match: {first: Found a family, turn: 1}
    tool_calls:
      - {name: rye_file_system_ls, input: {path: .}}
      - {name: rye_execute, input: {item_type: directive, item_id: member}}
  - match: {first: Found a family, turn: 2}
    text: 'My child: {{ toJSON (result 1) }}'
  - match: {first: Belong to it, turn: 1}
    tool_calls: [{name: rye_file_system_ls, input: {path: .}}]
  - match: {first: Belong to it, turn: 2}
    text: I do.
  - match: {first: Found a clan, turn: 1}
    tool_calls: [{name: rye_execute, input: {item_type: directive, item_id: stay, async: true}}]
  - match: {first: Be curious, turn: 1}
    tool_calls: [{name: rye_file_system_ls, input: {path: .}}]
  - match: {first: Be curious}
    text: I was.
  - match: {last: Go on with it}
    text: Went on.
  - match: {first: Be quick}
    text: Quick.
  - match: {first: You are thread 2 of its chain}
    text: It took long.
  - match: {first: Take long}
    tool_calls: [{name: rye_file_system_ls, input: {path: .}}]
    usage: {input_tokens: 19000, output_tokens: 100}
  - hang: true
`

// scenario reaches steps. The server, or a thread, may die at any moment of it:
// any answer of a call is right then, and the test looks afterwards at what is
// left. The calls that the model receives tell when the threads are where
// they should be.
type scenario struct {
	name  string
	slots int // max_running
	// steps begin with one of these; at others a process dies in other scenarios,
	// and in this one only in a soak.
	steps []string
	run   func(p *place, h *host, died func() bool)
	more  string // files of the project, in place of those of [walked]
}

// place is the project of the scenario.
func (s scenario) place(t *testing.T) *place {
	t.Helper()
	return newPlace(t, fmt.Sprintf(walked, s.slots)+s.more)
}

// asksFirst lets threads ask before they hand over.
const asksFirst = `
-- .ai/config/agent/resilience.yaml --
on_limit: {deadline_seconds: 600}
-- .ai/config/agent/coordination.yaml --
continuation: {approval: ask}
`

// everything is what every step begins with.
var everything = []string{""}

var scenarios = []scenario{
	{"family", 4, everything, func(_ *place, h *host, _ func() bool) { _, _ = fork(h, "family") }, ""},
	{"line", 1, []string{"start.queued", "queue.", "launch.", "finish."}, func(p *place, h *host, died func() bool) {
		first, _ := start(h, "stay")
		for range 2 {
			_, _ = start(h, "quick")
		}
		p.wantCallsOr(1, died)
		_, _ = ask[stop.Stopped](h, "cancel_thread", args{"thread_id": first.ThreadID})
		p.wantCallsOr(3, died)
	}, ""},
	{"cancel", 4, []string{"stop.", "loop.decided", "loop.children", "finish."}, func(p *place, h *host, died func() bool) {
		clan := startClan(p, h, died)
		_, _ = ask[stop.Stopped](h, "cancel_thread", args{"thread_id": clan.ThreadID})
	}, ""},
	{"cancel in the queue", 1, []string{"stop.", "queue."}, func(p *place, h *host, died func() bool) {
		clan, _ := start(h, "clan")
		p.wantCallsOr(2, died)
		_, _ = ask[stop.Stopped](h, "cancel_thread", args{"thread_id": clan.ThreadID})
	}, ""},
	{"kill", 4, []string{"stop."}, func(p *place, h *host, died func() bool) {
		clan := startClan(p, h, died)
		_, _ = ask[stop.Stopped](h, "kill_thread", args{"thread_id": clan.ThreadID})
	}, ""},
	{"death", 4, []string{"settle.", "stop.", "finish."}, func(p *place, h *host, died func() bool) {
		clan := startClan(p, h, died)
		if clan.PID != 0 {
			_ = syscall.Kill(clan.PID, syscall.SIGKILL)
		}
		_, _ = waitFor(h, clan.ThreadID)
	}, ""},
	{"question", 4, []string{"loop.asked", "loop.told"}, func(_ *place, h *host, _ func() bool) { _, _ = fork(h, "curious") }, ""},
	{"handoff", 4, []string{"handoff.", "finish.", "launch.", "settle.", "loop.su", "loop.decided", "loop.started"}, func(_ *place, h *host, _ func() bool) {
		_, _ = fork(h, "long")
	}, ""},
	{"handoff with leave", 4, []string{"loop.asked", "loop.told", "loop.edited"}, func(_ *place, h *host, _ func() bool) {
		long, _ := start(h, "long")
		_, _ = waitFor(h, long.ThreadID) // until it asks
		_, _ = ask[control.Approved](h, "approve_thread", args{"thread_id": long.ThreadID, "decision": thread.Accept, "summary": "Half done."})
		_, _ = waitFor(h, long.ThreadID)
	}, asksFirst},
	{"resume", 4, []string{"start.", "launch."}, func(_ *place, h *host, _ func() bool) {
		quick, _ := fork(h, "quick")
		resumed, _ := resume(h, quick.ThreadID)
		_, _ = waitFor(h, resumed.NewThreadID)
	}, ""},
	{"fork", 4, []string{"fork."}, func(_ *place, h *host, _ func() bool) {
		quick, _ := fork(h, "quick")
		for _, message := range []string{"Go on with it.", ""} {
			copied, _ := ask[continuation.Forked](h, "fork_thread", args{"thread_id": quick.ThreadID, "message": message})
			_, _ = waitFor(h, copied.ThreadID)
		}
	}, ""},
	{"set", 4, []string{"set."}, func(_ *place, h *host, _ func() bool) {
		_, _ = ask[fanout.Answer](h, "map_threads", args{"directive": "quick", "items": []args{{}}})
	}, ""},
	{"steer", 4, []string{"loop.heard", "loop.signed", "loop.delivered"}, func(p *place, h *host, died func() bool) {
		stay, _ := start(h, "stay")
		p.wantCallsOr(1, died)
		_, _ = ask[steer.Steered](h, "steer_thread", args{"thread_id": stay.ThreadID, "message": "Go on with it.", "interrupt": true})
		_, _ = waitFor(h, stay.ThreadID)
	}, ""},
	{"dead spawner", 4, []string{"settle.", "queue."}, func(p *place, h *host, died func() bool) {
		env, _ := p.dieAt("start.queued", 1)
		spawner := p.serve(env...)
		_, _ = start(spawner, "quick")
		spawner.close()
		_, _ = waitFor(h, newest(h))
	}, ""},
}

func fork(h *host, directive string) (view.Started, error) {
	return ask[view.Started](h, "rye_execute", args{"item_id": directive, "thread": "fork"})
}

// newest is the thread that was registered last.
func newest(h *host) thread.ID {
	list, err := ask[view.List](h, "list_threads", args{"limit": 1})
	if err != nil || len(list.Threads) == 0 {
		return ""
	}
	return list.Threads[0].ThreadID
}

func start(h *host, directive string) (view.Started, error) {
	return ask[view.Started](h, "rye_execute", args{"item_id": directive, "async": true})
}

func resume(h *host, id thread.ID) (continuation.Resumed, error) {
	return ask[continuation.Resumed](h, "rye_execute", args{
		"item_type": "tool", "item_id": "rye/agent/threads/orchestrator",
		"parameters": args{"operation": "resume_thread", "thread_id": id, "message": "Go on with it."},
	})
}

// startClan starts a thread with a child that both stay in a call of the model,
// unless somebody dies first.
func startClan(p *place, h *host, died func() bool) view.Started {
	clan, err := start(h, "clan")
	if err != nil && !died() {
		p.Errorf("start: %v", err)
	}
	p.wantCallsOr(3, died)
	return clan
}

// wantCallsOr waits until the model has received so many calls, or somebody has
// died.
func (p *place) wantCallsOr(want int, died func() bool) {
	p.Helper()
	p.until(func() (bool, string) {
		calls, _ := p.model.counts()
		return calls >= want || died(), fmt.Sprintf("the model received %d calls, want %d", calls, want)
	})
}

// TestFaultWalk kills, in every scenario, whoever comes to a step, for each
// step and each time it is come to, and looks at what is left with a new
// server. Without a soak somebody dies at the sampled steps alone, once, and scenarios come to
// all the others.
func TestFaultWalk(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	var chosen, come, seen sync.Map // steps
	at := make(chan struct{}, runtime.GOMAXPROCS(0))
	t.Run("walk", func(t *testing.T) {
		for _, s := range scenarios {
			if soakMinutes() == 0 && slices.ContainsFunc(walkedElsewhere, func(begin string) bool { return slices.Contains(s.steps, begin) }) {
				continue
			}
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				for point, times := range s.traced(t, &chosen, &come) {
					for n := 1; n <= times; n++ {
						t.Run(fmt.Sprintf("%s/%d", point, n), func(t *testing.T) {
							t.Parallel()
							at <- struct{}{}
							defer func() { <-at }()
							if s.dies(t, point, n) {
								seen.Store(point, true)
							}
						})
					}
				}
			})
		}
	})
	if t.Failed() {
		return
	}
	for _, point := range allCrashpoints() {
		if _, is := come.Load(point); !is && !isWalkedElsewhere(point) {
			t.Errorf("no scenario comes to %s", point)
		}
	}
	for _, point := range deadly() {
		if _, died := seen.Load(point); !died {
			t.Errorf("nobody has died at %s", point)
		}
	}
}

// sampled are the steps at which somebody dies without a soak: those at which no test of a
// package kills a process, and of the others some of each part of the program. The rest is
// walked by TestDeath of runtime/loop, by the TestKilled* of orchestrator/control, and by the
// tests of runtime/finish.
var sampled = []thread.Crashpoint{
	"place.key", "place.record", "place.folder", "place.marker",
	"start.registered", "start.linked", "start.queued", "queue.admitted", "launch.launched",
	"loop.claimed", "loop.call", "loop.child", "loop.checkpoint", "loop.asked", "loop.successor", "loop.decided",
	"loop.children", "loop.started", "loop.after",
	"handoff.registered", "handoff.seeded", "handoff.described", "handoff.budget",
	"finish.transcript", "finish.ledger", "finish.registry",
	"settle.locked", "settle.returned", "settle.children", "stop.intended", "stop.level",
}

// deadly are the steps at which somebody dies.
func deadly() []thread.Crashpoint {
	if soakMinutes() > 0 {
		return allCrashpoints()
	}
	return sampled
}

// walkedElsewhere are beginnings of steps whose scenarios a soak alone plays.
var walkedElsewhere = []string{"fork.", "set.", "loop.heard", "loop.signed", "loop.delivered", "loop.edited"}

func isWalkedElsewhere(point thread.Crashpoint) bool {
	return soakMinutes() == 0 && slices.ContainsFunc(walkedElsewhere, func(begin string) bool { return strings.HasPrefix(string(point), begin) })
}

func (s scenario) isAbout(point thread.Crashpoint) bool {
	return slices.ContainsFunc(s.steps, func(begin string) bool { return strings.HasPrefix(string(point), begin) })
}

// times is how often somebody dies at one step, at most. The second time is that
// of a child where the scenario is about everything.
func (s scenario) times() int {
	if soakMinutes() > 0 || slices.Equal(s.steps, everything) {
		return 2
	}
	return 1
}

// traced plays a scenario in which nobody dies, notes the steps that it comes to, and counts
// those at which somebody shall. Each step is chosen by one scenario; a soak takes it in all.
func (s scenario) traced(t *testing.T, chosen, come *sync.Map) map[thread.Crashpoint]int {
	t.Helper()
	p := s.place(t)
	env, steps := p.trace()
	h := p.serve(env...)
	s.run(p, h, func() bool { return false })
	h.close()
	p.wantLegal()
	times := map[thread.Crashpoint]int{}
	for _, r := range steps() {
		come.Store(r.crash, true)
		if !slices.Contains(deadly(), r.crash) || !s.isAbout(r.crash) && soakMinutes() == 0 {
			continue
		}
		if _, again := chosen.LoadOrStore(r.crash, s.name); !again || soakMinutes() > 0 {
			times[r.crash] = min(times[r.crash]+1, s.times())
		}
	}
	return times
}

// dies plays a scenario in which somebody dies, and checks what is left. It
// reports false when nobody came to the step so often.
func (s scenario) dies(t *testing.T, point thread.Crashpoint, n int) bool {
	t.Helper()
	p := s.place(t)
	env, died := p.dieAt(point, n)
	if h, err := p.tryServe(env...); err == nil {
		s.run(p, h, died)
		h.close()
	} else if !died() {
		p.Fatal(err)
	}
	p.wantLegal()
	return died()
}

// wantLegal looks at a project with a new server, which must find everything
// ended or put it right, and starts one more thread.
func (p *place) wantLegal() {
	p.Helper()
	h := p.serve()
	defer h.close()
	p.wantEnd(h)
	for _, ended := range must[view.List](h, "list_threads", nil).Threads {
		must[view.Status](h, "get_status", args{"thread_id": ended.ThreadID})
	}
	if quick, err := fork(h, "quick"); err != nil || quick.Result != "Quick." {
		p.Errorf("the next start: %+v, %v", quick, err)
	}
	h.close()
	p.wantRest(h)
	p.wantToldParents()
	p.wantChains()
}

// wantChains checks that each thread that handed over or was resumed is continued
// by one thread, and that every other that was to do so has never run.
func (p *place) wantChains() {
	p.Helper()
	st, err := sqlite.Open(context.Background(), placetest.Dir(p.dir), sqlite.Options{})
	p.noError(err)
	defer func() { _ = st.Close() }()
	rows, err := allRows(context.Background(), st)
	p.noError(err)
	at := map[thread.ID]thread.Record{}
	for _, rec := range rows {
		at[rec.ThreadID] = rec
	}
	for id, rec := range at {
		next := rec.ContinuationThreadID
		if kept := p.hasSummary(rec); kept && rec.Status != thread.Continued {
			p.Errorf("%s is %s and has a summary for a successor", id, rec.Status)
		}
		switch {
		case rec.Status == thread.Continued && next == "":
			p.Errorf("%s is continued by nobody", id)
		case next != "" && at[next].ContinuationOf != id:
			p.Errorf("%s is continued by %s, which continues %q", id, next, at[next].ContinuationOf)
		case rec.ContinuationOf != "" && at[rec.ContinuationOf].ContinuationThreadID != id &&
			(rec.Status != thread.Cancelled || rec.Cost.Turns > 0):
			p.Errorf("%s is %s with %d turns, and %s is not continued by it", id, rec.Status, rec.Cost.Turns, rec.ContinuationOf)
		}
	}
}

// hasSummary reports whether there is a summary of a thread for its successor.
func (p *place) hasSummary(rec thread.Record) bool {
	name := finish.KnowledgeID(finish.SummaryID(rec.Directive, rec.ThreadID)) + ".md"
	_, err := os.Stat(filepath.Join(finish.KnowledgeDir(p.dir), name))
	return err == nil
}

// wantRest checks that nothing works on the project any more and that all its
// threads have ended as they should. The server is named for its log.
func (p *place) wantRest(h *host) {
	p.Helper()
	p.until(func() (bool, string) {
		left, err := processesIn(p.dir)
		return err == nil && len(left) == 0, fmt.Sprintf("processes are left: %s (%v)", strings.Join(left, "\n"), err)
	})
	state := placetest.Dir(p.dir)
	if err := errors.Join(locksFree(state), settled(context.Background(), state)); err != nil {
		p.Errorf("%v\nthe server's log:\n%s", err, h.readLog())
	}
}

// wantEnd sees all threads end that live on: by themselves, or by a cancel when
// they hang and whoever was to stop them has died.
func (p *place) wantEnd(h *host) {
	p.Helper()
	// The last hooks of those that end start others.
	for active := allActive(h); len(active) > 0 && !p.Failed(); active = allActive(h) {
		p.wantEndOf(h, active)
	}
}

func (p *place) wantEndOf(h *host, active []view.Summary) {
	p.Helper()
	for _, hangs := range active {
		if hangs.Directive != "clan" && hangs.Directive != "stay" {
			continue
		}
		if stopped := must[stop.Stopped](h, "cancel_thread", args{"thread_id": hangs.ThreadID}); !stopped.Success {
			p.Errorf("cancel: %+v", stopped)
		}
	}
	for _, works := range active {
		p.wantEndOfOne(h, works.ThreadID)
	}
}

// wantEndOfOne waits until a thread has ended. A wait in which everything asks
// returns at once, so it is repeated until the question's deadline has decided; handoffs
// that nobody has heard of are declined.
func (p *place) wantEndOfOne(h *host, id thread.ID) {
	p.Helper()
	p.until(func() (bool, string) {
		waited, err := waitFor(h, id)
		otherwise := fmt.Sprintf("%s does not end (%v)\nthe server's log:\n%s", id, err, h.readLog())
		if err != nil || len(waited.Pending) > 0 && len(waited.Waiting) == 0 {
			p.Fatal(otherwise)
		}
		for _, open := range waited.Waiting {
			if open.Kind == thread.AskHandoff {
				_, _ = ask[control.Approved](h, "approve_thread", args{"thread_id": open.ThreadID, "decision": thread.Decline})
			}
		}
		return len(waited.Pending) == 0, otherwise
	})
}

func waitFor(h *host, id thread.ID) (view.WaitResult, error) {
	return ask[view.WaitResult](h, "wait_threads", args{"thread_ids": []thread.ID{id}, "timeout": waitPatience.Seconds()})
}

// wantToldParents checks that a thread that completed has heard how each of its
// children ended that it waited for.
func (p *place) wantToldParents() {
	p.Helper()
	state := placetest.Dir(p.dir)
	st, err := sqlite.Open(context.Background(), state, sqlite.Options{})
	p.noError(err)
	defer func() { _ = st.Close() }()
	rows, err := allRows(context.Background(), st)
	p.noError(err)
	for _, child := range rows {
		if child.Directive != "member" {
			continue
		}
		parent, err := st.Get(context.Background(), child.ParentID)
		p.noError(err)
		if parent.Status != thread.Completed {
			continue
		}
		told := fmt.Sprintf(`"status":%q`, child.Status)
		if !strings.Contains(parent.Outcome.Result, told) {
			p.Errorf("%s is %s and its parent says: %s", child.ThreadID, child.Status, parent.Outcome.Result)
		}
	}
}

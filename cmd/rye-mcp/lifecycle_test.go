package main_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/health"
	"github.com/rye-mcp/rye-mcp/orchestrator/steer"
	"github.com/rye-mcp/rye-mcp/orchestrator/stop"
	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
)

// lived is the project of the life cycles: threads that are done at once, that stay in
// a call of the model, that have a child which stays, that fail, and that hand over.
const lived = `
-- .ai/directives/quick.md --
` + "```xml" + `
<directive name="quick" version="1.0.0"><metadata><model tier="fast" /><limits spend="0.01" /></metadata></directive>
` + "```" + `

Be quick.
-- .ai/directives/stay.md --
` + "```xml" + `
<directive name="stay" version="1.0.0"><metadata><model tier="fast" /><limits spend="0.01" /></metadata></directive>
` + "```" + `

Stay.
-- .ai/directives/clan.md --
` + "```xml" + `
<directive name="clan" version="1.0.0">
  <metadata>
    <model tier="fast" />
    <limits spend="10.00" spawns="100" />
    <permissions><execute><directive>stay</directive></execute></permissions>
  </metadata>
</directive>
` + "```" + `

Found a clan that stays.
-- .ai/directives/hasty.md --
` + "```xml" + `
<directive name="hasty" version="1.0.0">
  <metadata>
    <model tier="fast" />
    <limits turns="1" spend="0.01" />
    <permissions><execute><tool>rye.file-system.ls</tool></execute></permissions>
  </metadata>
</directive>
` + "```" + `

Be hasty.
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
-- model.yaml --
turns:
  - {match: {last: Go on with it}, text: Went on., usage: {input_tokens: 100, output_tokens: 10}}
  - match: {first: Found a clan, turn: 1}
    tool_calls: [{name: rye_execute, input: {item_type: directive, item_id: stay, async: true}}]
  - match: {first: Be hasty}
    tool_calls: [{name: rye_file_system_ls, input: {path: .}}]
  - match: {first: Be quick}
    text: Quick.
  - match: {first: You are thread 2 of its chain}
    text: It took long.
  - match: {first: Take long}
    tool_calls: [{name: rye_file_system_ls, input: {path: .}}]
    usage: {input_tokens: 19000, output_tokens: 100}
  - hang: true
`

// expected is a thread as the model of the life cycle has it.
type expected struct {
	id        thread.ID
	directive string
	parent    thread.ID
	status    thread.State // running: it stays in a call of the model
	of, next  thread.ID    // the threads it continues, and is continued by
}

// cycle is a project whose threads are led through their lives, and the model of what
// must have become of them.
type cycle struct {
	*place
	hosts   []*host
	store   store.Store
	chance  *rand.Rand
	threads map[thread.ID]*expected
	did     []string // what was done so far
}

// step is something that is done to the threads of a project. It reports false where
// there is none it could be done to.
type step struct {
	name string
	do   func(c *cycle) bool
}

var steps = []step{
	{"start quick", (*cycle).startQuick}, {"start hasty", (*cycle).startHasty}, {"start stay", (*cycle).startStay},
	{"start clan", (*cycle).startClan}, {"start long", (*cycle).startLong},
	{"cancel", (*cycle).cancel}, {"kill", (*cycle).kill}, {"process dies", (*cycle).processDies}, {"server dies", (*cycle).serverDies},
	{"resume", (*cycle).resume}, {"fork", (*cycle).fork}, {"fork to rest", (*cycle).forkToRest},
	{"steer", (*cycle).steer}, {"hand over", (*cycle).handOver},
	{"delete", (*cycle).deletes}, {"delete by force", (*cycle).deletesByForce}, {"clean up", (*cycle).cleanUp},
	{"reconcile", (*cycle).reconcile},
}

// TestLifeCycle does to threads what can be done to them, in an order of chance and
// with kills between, and looks after each step whether registry, folders, ledger and
// chains are what the model says. The seed and the steps are told when it fails.
func TestLifeCycle(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	walks, length := sized(2, 40), sized(32, 150)
	for seed := range walks {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			c := newCycle(t, uint64(seed))
			for range length {
				c.once()
				if t.Failed() {
					t.Fatalf("after %s", strings.Join(c.did, ", "))
				}
			}
			c.end()
		})
	}
}

func newCycle(t *testing.T, seed uint64) *cycle {
	t.Helper()
	c := &cycle{place: newPlace(t, lived), chance: rand.New(rand.NewPCG(seed, 15)), threads: map[thread.ID]*expected{}}
	c.hosts = []*host{c.serve(), c.serve()}
	c.startQuick() // makes the state
	st, err := sqlite.Open(t.Context(), placetest.Dir(c.dir), sqlite.Options{})
	c.noError(err)
	t.Cleanup(func() { _ = st.Close() })
	c.store = st
	return c
}

// once does one step, and looks.
func (c *cycle) once() {
	c.Helper()
	for {
		next := steps[c.chance.IntN(len(steps))]
		if len(c.staying()) > 8 && strings.HasPrefix(next.name, "start") {
			continue
		}
		if next.do(c) {
			c.did = append(c.did, next.name)
			c.agrees()
			return
		}
	}
}

// end sees all threads end.
func (c *cycle) end() {
	c.Helper()
	for _, e := range c.staying() {
		if c.threads[e.id].status == thread.Running {
			c.stopWith("cancel_thread", e)
		}
	}
	c.agrees()
	for _, h := range c.hosts {
		h.close()
	}
	c.wantRest(c.hosts[0])
	c.noFault(c.hosts...)
}

func (c *cycle) host() *host { return c.hosts[c.chance.IntN(len(c.hosts))] }

// some are the threads of the model that hold, in the order of their ids.
func (c *cycle) some(holds func(*expected) bool) []*expected {
	var found []*expected
	for _, e := range slices.SortedFunc(maps.Values(c.threads), func(a, b *expected) int { return cmp.Compare(a.id, b.id) }) {
		if holds(e) {
			found = append(found, e)
		}
	}
	return found
}

func (c *cycle) staying() []*expected {
	return c.some(func(e *expected) bool { return e.status == thread.Running })
}

// one is a thread by chance; nil when there is none.
func (c *cycle) one(among []*expected) *expected {
	if len(among) == 0 {
		return nil
	}
	return among[c.chance.IntN(len(among))]
}

// any is a thread by chance, which is started where there is none.
func (c *cycle) any() *expected {
	if len(c.threads) == 0 {
		c.startQuick()
	}
	return c.one(c.some(func(*expected) bool { return true }))
}

// newest is the last of a thread's chain.
func (c *cycle) newest(e *expected) *expected {
	for e.next != "" {
		e = c.threads[e.next]
	}
	return e
}

// below are the threads below one, with those that continue them.
func (c *cycle) below(top *expected) []*expected {
	return c.some(func(e *expected) bool {
		for e.parent != "" {
			if e.parent == top.id {
				return true
			}
			e = c.threads[e.parent]
		}
		return false
	})
}

func (c *cycle) expect(e expected) { c.threads[e.id] = &e }

func (c *cycle) startQuick() bool { return c.startsToEnd("quick", thread.Completed) }
func (c *cycle) startHasty() bool { return c.startsToEnd("hasty", thread.Error) }

// startsToEnd starts a thread that ends by itself.
func (c *cycle) startsToEnd(directive string, end thread.State) bool {
	h := c.host()
	started, err := ask[view.Started](h, "rye_execute", args{"item_id": directive, "thread": "fork"})
	if failed, is := errors.AsType[*refused](err); is && end != thread.Completed { // which is told as one
		err = json.Unmarshal([]byte(failed.text), &started)
	}
	if err != nil {
		c.Fatalf("%s: %v\nthe server's log:\n%s", directive, err, h.readLog())
	}
	c.expect(expected{id: started.ThreadID, directive: directive, status: end})
	return true
}

func (c *cycle) startStay() bool { return c.startsToStay("stay", 1) }

func (c *cycle) startClan() bool {
	c.startsToStay("clan", 3)
	return true
}

// startsToStay starts a thread that stays when the model has had so many calls.
func (c *cycle) startsToStay(directive string, calls int) bool {
	before, _ := c.model.counts()
	h := c.host()
	started := must[view.Started](h, "rye_execute", args{"item_id": directive, "async": true})
	c.wantCalls(before + calls)
	c.expect(expected{id: started.ThreadID, directive: directive, status: thread.Running})
	for _, child := range must[view.List](h, "list_threads", args{"parent_id": started.ThreadID}).Threads {
		c.expect(expected{id: child.ThreadID, directive: child.Directive, parent: started.ThreadID, status: thread.Running})
	}
	return true
}

// startLong starts a thread that hands over to another.
func (c *cycle) startLong() bool {
	h := c.host()
	started := must[view.Started](h, "rye_execute", args{"item_id": "long", "thread": "fork"})
	c.expect(expected{id: started.ThreadID, directive: "long", status: thread.Continued, next: started.ResolvedThreadID})
	c.expect(expected{id: started.ResolvedThreadID, directive: "long", status: thread.Completed, of: started.ThreadID})
	return true
}

func (c *cycle) cancel() bool { return c.stopWith("cancel_thread", c.any()) }
func (c *cycle) kill() bool   { return c.stopWith("kill_thread", c.any()) }

// stopWith stops a thread and all below it.
func (c *cycle) stopWith(tool string, e *expected) bool {
	c.Helper()
	stopped := must[stop.Stopped](c.host(), tool, args{"thread_id": e.id})
	if !stopped.Success {
		c.Errorf("%s of %s: %+v", tool, e.id, stopped)
	}
	c.ends(c.newest(e), thread.Cancelled)
	return true
}

// ends is what becomes of a thread that stays and of those below it.
func (c *cycle) ends(e *expected, as thread.State) {
	for _, child := range c.below(e) {
		if child.status == thread.Running {
			child.status = thread.Cancelled
		}
	}
	if e.status == thread.Running {
		e.status = as
	}
}

// processDies kills the process of a thread. The next look finds it dead.
func (c *cycle) processDies() bool {
	e := c.one(c.staying())
	if e == nil {
		return false
	}
	rec, err := c.store.Get(context.Background(), e.id)
	c.noError(err)
	c.noError(syscall.Kill(rec.PID, syscall.SIGKILL))
	must[view.WaitResult](c.host(), "wait_threads", args{"thread_ids": []thread.ID{e.id}, "timeout": waitPatience.Seconds()})
	c.ends(e, thread.Error)
	return true
}

// serverDies kills a server. Its threads go on.
func (c *cycle) serverDies() bool {
	i := c.chance.IntN(len(c.hosts))
	victim := c.hosts[i]
	c.noError(victim.cmd.Process.Kill())
	victim.close()
	c.hosts[i] = c.serve()
	return true
}

// resume has a thread go on. One that has not ended is refused.
func (c *cycle) resume() bool {
	e := c.any()
	newest := c.newest(e)
	resumed, err := ask[continuation.Resumed](c.host(), "resume_thread", args{"thread_id": e.id, "message": "Go on with it."})
	if newest.status == thread.Running {
		c.wantRefused("resume", newest, err, "conflict")
		return true
	}
	if err != nil {
		c.Errorf("resume %s: %v", e.id, err)
		return true
	}
	if _, err := waitFor(c.hosts[0], resumed.NewThreadID); err != nil {
		c.Error(err)
	}
	next := expected{id: resumed.NewThreadID, directive: e.directive, of: newest.id, status: thread.Completed}
	if newest.parent != "" && c.newest(c.threads[newest.parent]).status == thread.Running {
		next.parent = c.newest(c.threads[newest.parent]).id
	}
	newest.next = next.id
	c.expect(next)
	return true
}

func (c *cycle) fork() bool       { return c.forks(args{"message": "Go on with it."}) }
func (c *cycle) forkToRest() bool { return c.forks(args{}) }

// forks copies a thread, which itself stays as it is. One that has not said anything
// that is signed is refused.
func (c *cycle) forks(arguments args) bool {
	e := c.any()
	arguments["thread_id"] = e.id
	forked, err := ask[continuation.Forked](c.host(), "fork_thread", arguments)
	if e.directive == "stay" && e.status == thread.Running {
		c.wantRefused("fork", e, err, "conflict")
		return true
	}
	if err != nil {
		c.Errorf("fork %s: %v", e.id, err)
		return true
	}
	if _, err := waitFor(c.hosts[0], forked.ThreadID); err != nil {
		c.Error(err)
	}
	c.expect(expected{id: forked.ThreadID, directive: e.directive, status: thread.Completed})
	return true
}

// steer tells a thread to go on, which breaks off its call of the model. One that has
// ended is refused.
func (c *cycle) steer() bool {
	e := c.any()
	newest := c.newest(e)
	_, err := ask[steer.Steered](c.host(), "steer_thread", args{"thread_id": e.id, "message": "Go on with it.", "interrupt": true})
	if newest.status != thread.Running {
		c.wantRefused("steer", newest, err, "conflict")
		return true
	}
	if err != nil {
		c.Errorf("steer %s: %v", e.id, err)
		return true
	}
	if _, err := waitFor(c.hosts[0], newest.id); err != nil {
		c.Error(err)
	}
	newest.status = thread.Completed // those below it go on
	return true
}

// handOver asks a thread that has ended to hand over, which it cannot any more.
func (c *cycle) handOver() bool {
	e := c.any()
	if c.newest(e).status == thread.Running {
		return false
	}
	_, err := ask[struct{}](c.host(), "handoff_thread", args{"thread_id": e.id})
	c.wantRefused("handoff", e, err, "conflict")
	return true
}

func (c *cycle) deletes() bool        { return c.deletesWith(false) }
func (c *cycle) deletesByForce() bool { return c.deletesWith(true) }

// deletesWith deletes a thread with its chain and all below, as a dry run has shown. Any
// of those that has not ended is in the way, unless it is stopped by force.
func (c *cycle) deletesWith(force bool) bool {
	e, h := c.any(), c.host()
	going := c.with(e)
	lives := slices.ContainsFunc(going, func(e *expected) bool { return e.status == thread.Running })
	spent := c.spentToday()
	shown := must[tidy.Deleted](h, "delete_thread", args{"thread_id": e.id, "dry_run": true, "force": force})
	if !slices.Equal(slices.Sorted(slices.Values(shown.ThreadIDs)), idsOf(going)) {
		c.Errorf("the dry run of %s shows %v, want %v", e.id, shown.ThreadIDs, idsOf(going))
	}
	_, err := ask[tidy.Deleted](h, "delete_thread", args{"thread_id": e.id, "confirm": true, "force": force})
	if lives && !force {
		c.wantRefused("delete", e, err, "conflict")
		return true
	}
	if err != nil {
		c.Errorf("delete %s: %v", e.id, err)
		return true
	}
	for _, gone := range going {
		delete(c.threads, gone.id)
		_, err := ask[view.Status](h, "get_status", args{"thread_id": gone.id})
		c.wantRefused("status", gone, err, "not_found")
	}
	// A thread that is stopped by force may have paid for the call that was on its way.
	if now := c.spentToday(); now < spent || now != spent && !lives {
		c.Errorf("after %s was deleted %s were spent today, before %s", e.id, now, spent)
	}
	return true
}

func (c *cycle) spentToday() thread.Micros {
	return must[health.Report](c.hosts[0], "thread_health", nil).SpendToday
}

func idsOf(list []*expected) (ids []thread.ID) {
	for _, e := range list {
		ids = append(ids, e.id)
	}
	return ids
}

// with are a thread, its chain, and all below those with their chains.
func (c *cycle) with(top *expected) []*expected {
	in := map[thread.ID]bool{top.id: true}
	for grows := true; grows; {
		grows = false
		for id, e := range c.threads {
			if !in[id] && (in[e.parent] || in[e.of] || in[e.next]) {
				in[id], grows = true, true
			}
		}
	}
	return c.some(func(e *expected) bool { return in[e.id] })
}

// cleanUp deletes all that has ended, unless something above it, below it or in its
// chain has not, as a dry run shows. A thread whose process still writes its last files
// stays until it has.
func (c *cycle) cleanUp() bool {
	h := c.host()
	going := c.some(func(e *expected) bool { return !c.livesWith(e) })
	c.until(func() (bool, string) {
		shown := must[tidy.Cleaned](h, "cleanup_threads", args{"older_than": "0s", "dry_run": true})
		return shown.Threads == len(going), fmt.Sprintf("%+v were to be cleaned up, want %v", shown, idsOf(going))
	})
	done := must[tidy.Cleaned](h, "cleanup_threads", args{"older_than": "0s", "confirm": true})
	if done.Threads != len(going) {
		c.Errorf("%+v were cleaned up, want %v", done, idsOf(going))
	}
	for _, e := range going {
		delete(c.threads, e.id)
	}
	return true
}

// livesWith reports whether any of those that a thread is bound to by chains and parents
// has not ended.
func (c *cycle) livesWith(e *expected) bool {
	top := e
	for top.parent != "" && c.threads[top.parent] != nil {
		top = c.threads[top.parent]
	}
	return slices.ContainsFunc(c.with(top), func(e *expected) bool { return e.status == thread.Running })
}

// reconcile finds nothing to mend, whatever was killed.
func (c *cycle) reconcile() bool {
	found := must[health.Reconciliation](c.host(), "reconcile_threads", args{"all": true, "apply": c.chance.IntN(2) == 0})
	if len(found.Findings) > 0 {
		c.Errorf("reconcile: %+v", found.Findings)
	}
	return true
}

// wantRefused checks that a call was refused with a code.
func (c *cycle) wantRefused(what string, e *expected, err error, code string) {
	c.Helper()
	var told *refused
	if !errors.As(err, &told) || !strings.Contains(told.text, fmt.Sprintf(`"code":%q`, code)) {
		c.Errorf("%s of %s, which is %s: %v, want the code %s", what, e.id, e.status, err, code)
	}
}

// agrees checks that registry, ledger, folders and chains are what the model says.
func (c *cycle) agrees() {
	c.Helper()
	rows, err := allRows(context.Background(), c.store)
	c.noError(err)
	if got, want := len(rows), len(c.threads); got != want {
		c.Errorf("there are %d threads, want %d", got, want)
	}
	for _, rec := range rows {
		e := c.threads[rec.ThreadID]
		if e == nil {
			c.Errorf("nobody has started %s", rec.ThreadID)
			continue
		}
		if got := (expected{rec.ThreadID, rec.Directive, rec.ParentID, rec.Status, rec.ContinuationOf, rec.ContinuationThreadID}); got != *e {
			c.Errorf("got %+v, want %+v", got, *e)
		}
		switch {
		case !e.status.Terminal():
			err = c.open(rec)
		case c.livesBelow(e): // and holds some of its money
			err = filesAgree(placetest.Dir(c.dir), rec)
		default:
			err = errors.Join(rowSettled(context.Background(), c.store, rec), filesAgree(placetest.Dir(c.dir), rec))
		}
		if err != nil {
			c.Errorf("%s: %v", rec.ThreadID, err)
		}
	}
}

func (c *cycle) livesBelow(e *expected) bool {
	return slices.ContainsFunc(c.below(e), func(e *expected) bool { return e.status == thread.Running })
}

// open checks a thread that stays.
func (c *cycle) open(rec thread.Record) error {
	budget, err := c.store.Budget(context.Background(), rec.ThreadID)
	switch {
	case err != nil:
		return err
	case !budget.Active:
		return fmt.Errorf("its budget is settled: %+v", budget)
	case !c.runs(rec.PID):
		return fmt.Errorf("its process %d does not run", rec.PID)
	}
	return nil
}

// runs reports whether a process lives.
func (c *cycle) runs(pid int) bool { return syscall.Kill(pid, 0) == nil }

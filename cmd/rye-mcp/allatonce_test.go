package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/health"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// together is the project of the life cycles with few slots, threads that ask, that write
// notes to their parents, and that hand over as %s allows.
func together(approval string) string {
	return fmt.Sprintf(`
-- .ai/directives/curious.md --
`+"```xml"+`
<directive name="curious" version="1.0.0">
  <metadata>
    <model tier="fast" />
    <limits turns="1" spend="0.20" on_limit="ask" />
    <permissions><execute><tool>rye.file-system.ls</tool></execute></permissions>
  </metadata>
</directive>
`+"```"+`

Be hasty, and ask.
-- .ai/directives/nest.md --
`+"```xml"+`
<directive name="nest" version="1.0.0">
  <metadata>
    <model tier="fast" />
    <limits spend="1.00" spawns="9" />
    <permissions><execute><directive>teller</directive></execute></permissions>
  </metadata>
</directive>
`+"```"+`

Listen in a nest.
-- .ai/directives/teller.md --
`+"```xml"+`
<directive name="teller" version="1.0.0">
  <metadata>
    <model tier="fast" />
    <limits spend="0.05" />
    <permissions><execute><tool>rye.agent.threads.orchestrator</tool></execute></permissions>
  </metadata>
</directive>
`+"```"+`

Tell it.
-- .ai/directives/each.md --
`+"```xml"+`
<directive name="each" version="1.0.0">
  <metadata><model tier="fast" /><limits spend="0.01" /></metadata>
  <inputs><input name="number" type="integer" /></inputs>
</directive>
`+"```"+`

Be quick with {input:number}.
-- .ai/config/agent/agent.yaml --
threads: {max_running: 5}
-- .ai/config/agent/coordination.yaml --
continuation: {approval: %s}
`, approval) + strings.Replace(lived, "turns:\n", `turns:
  - match: {first: Listen in a nest, turn: 1}
    tool_calls:
      - {name: rye_execute, input: {item_type: directive, item_id: teller, async: true}}
      - {name: rye_execute, input: {item_type: directive, item_id: teller}}
  - match: {first: Tell it, turn: 1}
    tool_calls:
      - {name: rye_execute, input: {item_type: tool, item_id: rye/agent/threads/orchestrator, parameters: {operation: send_note, to: parent, message: It is told.}}}
  - {match: {first: Tell it}, text: I told it.}
`, 1)
}

// crew are four servers on one project, each with a client that does one thing after
// another to the threads of all.
type crew struct {
	*soak
	all []*host
}

// act is what a client does, how often in a hundred, and with which codes it may be
// refused: its object may be in any state, or gone.
type act struct {
	name string
	in   int
	may  []tool.Code
	do   func(c *crew, h *host, r *rand.Rand) error
}

// Codes of what is about one thread that may be gone, may not be in the state for it, or
// may never have begun.
var (
	gone  = []tool.Code{tool.CodeNotFound, tool.CodeConflict}
	begun = append(gone, tool.CodeUnsupported)
)

var acts = []act{
	{"start", 20, nil, (*crew).starts},
	{"fork", 6, append(begun, tool.CodeBadArguments), func(c *crew, h *host, r *rand.Rand) error {
		arguments := args{"thread_id": c.one(r)}
		if r.IntN(2) == 0 {
			arguments["message"] = "Go on with it."
		}
		if r.IntN(4) == 0 {
			arguments["at_turn"] = 1
		}
		return c.makes(h, "fork_thread", arguments)
	}},
	{"steer", 9, begun, func(c *crew, h *host, r *rand.Rand) error {
		return does(h, "steer_thread", args{"thread_id": c.one(r), "message": "Go on with it.", "interrupt": r.IntN(2) == 0})
	}},
	{"note", 1, []tool.Code{tool.CodeUnsupported}, func(c *crew, h *host, r *rand.Rand) error {
		return operates(h, "send_note", args{"to": c.one(r), "message": "Psst."})
	}},
	{"rename", 6, gone, func(c *crew, h *host, r *rand.Rand) error {
		return does(h, "rename_thread", args{
			"thread_id": c.one(r), "name": fmt.Sprintf("Name %d", r.IntN(9)), "metadata": args{"round": r.IntN(3), "at": nil},
		})
	}},
	{"cancel", 7, gone, func(c *crew, h *host, r *rand.Rand) error {
		return does(h, "cancel_thread", args{"thread_id": c.one(r)})
	}},
	{"kill", 4, gone, func(c *crew, h *host, r *rand.Rand) error {
		return does(h, "kill_thread", args{"thread_id": c.one(r)})
	}},
	{"death", 3, nil, func(c *crew, _ *host, r *rand.Rand) error {
		if victim := c.pick(r); c.runs(victim.PID) {
			return syscall.Kill(victim.PID, syscall.SIGKILL)
		}
		return nil
	}},
	{"resume", 6, begun, func(c *crew, h *host, r *rand.Rand) error {
		return c.makes(h, "resume_thread", args{"thread_id": c.one(r), "message": "Go on with it."})
	}},
	{"handoff", 4, begun, func(c *crew, h *host, r *rand.Rand) error {
		return does(h, "handoff_thread", args{"thread_id": c.one(r), "summary": "Where we are."})
	}},
	{"approve", 5, append(begun, tool.CodeBadArguments), func(c *crew, h *host, r *rand.Rand) error {
		arguments := args{"thread_id": c.one(r), "decision": []string{"raise", "finish", "stop", "go_on", "accept", "decline"}[r.IntN(6)]}
		if arguments["decision"] == "raise" {
			arguments["limits"] = args{"turns": 3}
		}
		return does(h, "approve_thread", arguments)
	}},
	{"map", 3, []tool.Code{tool.CodeNotFound}, func(c *crew, h *host, r *rand.Rand) error {
		return c.makes(h, "map_threads", args{
			"directive": "each", "items": []args{{"number": r.IntN(3)}, {"number": 3 + r.IntN(3)}}, "wait_seconds": 0,
		})
	}},
	{"delete", 6, gone, func(c *crew, h *host, r *rand.Rand) error {
		arguments := args{"thread_id": c.one(r), "force": r.IntN(2) == 0, "dry_run": true}
		if err := does(h, "delete_thread", arguments); err != nil {
			return err
		}
		delete(arguments, "dry_run")
		arguments["confirm"] = true
		return does(h, "delete_thread", arguments)
	}},
	{"cleanup", 2, []tool.Code{tool.CodeConflict}, func(_ *crew, h *host, r *rand.Rand) error {
		arguments := args{"older_than": "0s", "status": []string{[]string{"completed", "error", "cancelled", "continued"}[r.IntN(4)]}, "dry_run": true}
		if r.IntN(2) == 0 {
			arguments["directive"] = "quick"
		}
		if err := does(h, "cleanup_threads", arguments); err != nil {
			return err
		}
		delete(arguments, "dry_run")
		arguments["confirm"] = true
		return does(h, "cleanup_threads", arguments)
	}},
	{"reconcile", 2, nil, func(_ *crew, h *host, r *rand.Rand) error {
		return does(h, "reconcile_threads", args{"apply": true, "all": r.IntN(2) == 0})
	}},
	{"health", 1, nil, func(_ *crew, h *host, r *rand.Rand) error {
		return does(h, "thread_health", args{"all": r.IntN(2) == 0})
	}},
	{"vacuum", 2, nil, func(c *crew, _ *host, _ *rand.Rand) error { return c.commands("threads", "vacuum") }},
	{"export", 2, nil, func(c *crew, _ *host, r *rand.Rand) error {
		id := c.one(r)
		return c.commands("threads", "export", string(id), "--chain", "--tree", "--out", filepath.Join(filepath.Dir(c.dir), fmt.Sprint(r.Uint64(), ".ryetest")))
	}},
	{"list", 5, nil, func(c *crew, h *host, r *rand.Rand) error {
		arguments := args{"sort": view.SortNames()[r.IntN(len(view.SortNames()))], "limit": 1 + r.IntN(20)}
		for name, value := range map[string]any{"query": "Name", "metadata": args{"round": 1}, "newer_than": "1d", "status": []string{"running", "error"}} {
			if r.IntN(3) == 0 {
				arguments[name] = value
			}
		}
		list, err := ask[view.List](h, "list_threads", arguments)
		for _, one := range list.Threads {
			c.knows(one.ThreadID, 0)
		}
		return err
	}},
	{"look", 6, gone, func(c *crew, h *host, r *rand.Rand) error {
		name := []string{"get_status", "get_chain", "read_transcript"}[r.IntN(3)]
		return does(h, name, args{"thread_id": c.one(r)})
	}},
}

// does calls an operation whose answer is of no interest.
func does(h *host, name string, arguments args) error {
	_, err := ask[json.RawMessage](h, name, arguments)
	return err
}

// operates calls an operation that has no tool of its own.
func operates(h *host, name string, parameters args) error {
	parameters["operation"] = name
	return does(h, "rye_execute", args{"item_type": "tool", "item_id": "rye/agent/threads/orchestrator", "parameters": parameters})
}

// knows remembers a thread, so that all clients do something to it.
func (c *crew) knows(id thread.ID, pid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id != "" && !slices.ContainsFunc(c.threads, func(s view.Started) bool { return s.ThreadID == id }) {
		c.threads = append(c.threads, view.Started{ThreadID: id, PID: pid})
	}
}

// one is a thread by chance, now and then one that there never was.
func (c *crew) one(r *rand.Rand) thread.ID {
	if r.IntN(20) == 0 {
		return "nobody-1"
	}
	return c.pick(r).ThreadID
}

func (c *crew) starts(h *host, r *rand.Rand) error {
	open, err := ask[view.List](h, "list_active", args{"limit": 25})
	if err != nil || open.NextCursor != "" {
		return err
	}
	directive := []string{"quick", "quick", "hasty", "stay", "clan", "long", "curious", "nest"}[r.IntN(8)]
	started, err := start(h, directive)
	c.knows(started.ThreadID, started.PID)
	return err
}

// makes calls an operation that makes a thread.
func (c *crew) makes(h *host, name string, arguments args) error {
	made, err := ask[struct {
		ThreadID    thread.ID `json:"thread_id"`
		NewThreadID thread.ID `json:"new_thread_id"`
		PID         int       `json:"pid"`
	}](h, name, arguments)
	c.knows(made.ThreadID, made.PID)
	c.knows(made.NewThreadID, made.PID)
	return err
}

// commands runs rye-mcp at a terminal. The threads that it is about may be gone.
func (c *crew) commands(arguments ...string) error {
	cmd := exec.Command(c.program, arguments...)
	cmd.Dir, cmd.Env = c.dir, c.env
	out, err := cmd.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); exited {
		if strings.HasPrefix(string(out), "Error:") && !leaks.Match(out) {
			return nil
		}
		return fmt.Errorf("%q: %w: %s", arguments, err, out)
	}
	return err
}

// leaks is what nobody is told: how things are kept, and that we have erred.
var leaks = regexp.MustCompile(`(?i)"internal"|\bbug;|panic|sqlite|constraint|no such (table|column)|SELECT |UPDATE |INSERT |\.db\b|goroutine`)

// acts has a client do one thing. A refusal must have a code that it may have, and say
// nothing of what is behind.
func (c *crew) acts(h *host, r *rand.Rand) {
	chosen, lot := acts[0], r.IntN(100)
	for _, a := range acts {
		if chosen = a; lot < a.in {
			break
		}
		lot -= a.in
	}
	c.mu.Lock()
	if len(c.threads) == 0 {
		chosen = acts[0]
	}
	c.mu.Unlock()
	err := chosen.do(c, h, r)
	what := chosen.name
	if told, is := errors.AsType[*refused](err); is {
		code := codeOf(told.text)
		what += " " + string(code)
		if !slices.Contains(chosen.may, code) || leaks.MatchString(told.text) {
			c.Errorf("%s: %v", chosen.name, told)
		}
	} else if err != nil {
		c.Errorf("%s: %v", chosen.name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[what]++
}

func codeOf(text string) tool.Code {
	var told struct{ Code tool.Code }
	_ = json.Unmarshal([]byte(text), &told) // without one it is no code that may be
	return told.Code
}

// TestAllAtOnce has the clients of four servers do everything that can be done to
// threads, all at once: to running, queued, asking, handing over, ended, died, deleted
// and unknown ones. Each call succeeds or is refused clearly, and at the end registry,
// ledger, folders, renderings, chains and messages agree.
func TestAllAtOnce(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for seed := range sized(1, 2*max(1, soakMinutes())) {
		approval := []string{"ask", "none"}[seed%2]
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			c := &crew{soak: &soak{place: newPlace(t, together(approval)), counts: map[string]int{}}}
			for range 4 {
				c.all = append(c.all, c.serve())
			}
			c.work(uint64(seed), sized(24, 400))
			c.end()
			for _, name := range slices.Sorted(maps.Keys(c.counts)) {
				t.Logf("%4d %s", c.counts[name], name)
			}
		})
	}
}

// work has each client do so many things.
func (c *crew) work(seed uint64, times int) {
	var group sync.WaitGroup
	for i, h := range c.all {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		group.Go(func() {
			for range times {
				c.acts(h, r)
			}
		})
	}
	group.Wait()
}

// end stops what has not ended, and looks whether all that is kept of threads agrees.
func (c *crew) end() {
	c.Helper()
	c.until(func() (bool, string) {
		active := allActive(c.all[0])
		for _, one := range active {
			if err := does(c.all[0], "cancel_thread", args{"thread_id": one.ThreadID}); err != nil {
				c.Fatal(err)
			}
		}
		return len(active) == 0, fmt.Sprintf("%d threads do not end: %+v", len(active), active)
	})
	for _, h := range c.all {
		h.close()
	}
	c.noFault(c.all...)
	c.wantRest(c.all[0])
	c.wantChains()

	c.steady = c.serve()
	if r := must[health.Reconciliation](c.steady, "reconcile_threads", args{"all": true}); len(r.Findings) > 0 {
		c.Errorf("what was done has left %+v", r.Findings)
	}
	c.clean()
	now := c.measure()
	c.wantFlat(now, now)
	c.steady.close()
	c.wantRest(c.steady)
}

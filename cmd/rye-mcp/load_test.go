package main_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
)

// loaded is the project of the load tests; %d is how many threads may run.
const loaded = `
-- .ai/directives/slow.md --
` + "```xml" + `
<directive name="slow" version="1.0.0"><metadata><model tier="fast" /><limits spend="0.05" /></metadata></directive>
` + "```" + `

Be held.
-- .ai/directives/brief.md --
` + "```xml" + `
<directive name="brief" version="1.0.0">
  <metadata><model tier="fast" /><limits spend="0.05" /></metadata>
  <inputs><input name="number" type="integer" default="0" /></inputs>
</directive>
` + "```" + `

Be brief, number {input:number}.
-- .ai/config/agent/agent.yaml --
threads: {max_running: %d}
-- model.yaml --
turns:
  - {match: {first: Be brief}, text: Brief., delay: 20ms, usage: {input_tokens: 100, output_tokens: 10}}
  - {text: Held., usage: {input_tokens: 100, output_tokens: 10}}
`

// startMany starts threads through several servers, several at a time, and
// returns their ids.
func startMany(hosts []*host, directive string, count int) []thread.ID {
	const atOnce = 8
	ids := make([]thread.ID, count)
	var (
		group sync.WaitGroup
		next  atomic.Int64
	)
	for range atOnce {
		group.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= count {
					return
				}
				h := hosts[i%len(hosts)]
				started, err := start(h, directive)
				if err != nil {
					h.p.Errorf("start %d: %v", i, err)
				}
				ids[i] = started.ThreadID
			}
		})
	}
	group.Wait()
	return ids
}

// wantCompleted waits for threads, a page of them with each call.
func wantCompleted(h *host, ids []thread.ID) {
	h.p.Helper()
	for page := range slices.Chunk(ids, 100) {
		for len(page) > 0 {
			waited, ok := answered[view.WaitResult](h, "wait_threads", args{"thread_ids": page, "timeout": waitPatience.Seconds()})
			if !ok {
				return
			}
			for id, result := range waited.Results {
				if result.Status.Terminal() && result.Status != thread.Completed {
					h.p.Errorf("%s is %s: %s", id, result.Status, result.Error)
				}
			}
			if len(waited.Pending) == len(page) {
				h.p.Errorf("after %s none of %v has ended", waitPatience, page)
				return
			}
			page = waited.Pending
		}
	}
}

// sized is how much of something is enough for a test, which is less under the
// race detector and more in a soak.
func sized(usual, soak int) int {
	switch {
	case soakMinutes() > 0:
		return soak
	case underRace:
		return max(1, usual/4)
	}
	return usual
}

// TestAliveAtOnce has many threads in a call of the model at the same moment,
// and many calls of a client in flight on one pipe meanwhile. Then all waits
// wake.
func TestAliveAtOnce(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const (
		databases = 25 // files at most; nothing stays open for each thread or call
	)
	alive, calls := sized(36, 200), sized(32, 50)
	p := newPlace(t, fmt.Sprintf(loaded, alive))
	h := p.serve()
	allActive(h) // opens the project
	before := openFiles(p, h)
	ids := startMany([]*host{h}, "slow", alive)
	p.wantCalls(alive)
	if active := allActive(h); len(active) != alive {
		t.Errorf("%d are active, want %d", len(active), alive)
	}

	var waits, looks sync.WaitGroup
	for i := range calls {
		waits.Go(func() { wantCompleted(h, ids[i:]) })
		looks.Go(func() { lookAround(h, ids[i]) })
	}
	looks.Wait()
	p.model.release()
	waits.Wait()
	wantCompleted(h, ids)
	p.until(func() (bool, string) {
		after := openFiles(p, h)
		return after < before+databases, fmt.Sprintf("the server has %d files open, had %d", after, before)
	})
	p.noFault(h)
	h.close()
	p.wantRest(h)
}

// lookAround makes one call of each kind that looks.
func lookAround(h *host, id thread.ID) {
	if status, ok := answered[view.Status](h, "get_status", args{"thread_id": id}); ok && status.Status != thread.Running {
		h.p.Errorf("%s is %s", id, status.Status)
	}
	for tool, arguments := range map[string]args{
		"list_threads":    {"status": []string{"running"}},
		"wait_threads":    {"thread_ids": []thread.ID{id}, "timeout": 0},
		"read_transcript": {"thread_id": id},
		"rye_execute":     {"item_id": "rye/file-system/ls", "parameters": args{"path": "."}},
	} {
		answered[struct{}](h, tool, arguments)
	}
}

// allActive lists the threads that have not ended.
func allActive(h *host) []view.Summary {
	h.p.Helper()
	var active []view.Summary
	for cursor := ""; ; {
		arguments := args{}
		if cursor != "" {
			arguments["cursor"] = cursor
		}
		page := must[view.List](h, "list_active", arguments)
		active = append(active, page.Threads...)
		if cursor = page.NextCursor; cursor == "" {
			return active
		}
	}
}

// TestQueue starts far more threads than may run, through several servers.
// Never more run than may.
func TestQueue(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const running = 4
	threads := sized(24, 2000)
	p := newPlace(t, fmt.Sprintf(loaded, running))
	hosts := []*host{p.serve(), p.serve(), p.serve()}
	wantCompleted(hosts[0], startMany(hosts, "brief", threads))
	if calls, most := p.model.counts(); calls != threads || most > running {
		t.Errorf("the model received %d calls, want %d; %d at once, want at most %d", calls, threads, most, running)
	}
	p.noFault(hosts...)
	for _, h := range hosts {
		h.close()
	}
	p.wantRest(hosts[0])
}

// TestOrder queues threads of several servers for the only slot.
// They run in the order in which they were started.
func TestOrder(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	threads := sized(12, 60)
	p := newPlace(t, fmt.Sprintf(loaded, 1))
	hosts := []*host{p.serve(), p.serve(), p.serve()}
	startMany(hosts, "slow", 1)
	p.wantCalls(1)
	var ids []thread.ID
	for i := range threads {
		started, err := ask[view.Started](hosts[i%len(hosts)], "rye_execute",
			args{"item_id": "brief", "async": true, "parameters": args{"number": i}})
		p.noError(err)
		if started.Status != thread.Created {
			t.Errorf("number %d is %s", i, started.Status)
		}
		ids = append(ids, started.ThreadID)
	}
	p.model.release()
	wantCompleted(hosts[0], ids)
	if got := p.model.order(); !slices.IsSorted(got) || len(got) != threads {
		t.Errorf("they ran in the order %v", got)
	}
	for _, h := range hosts {
		h.close()
	}
	p.wantRest(hosts[0])
}

// openFiles is how many files a server has open. Only Linux tells.
func openFiles(p *place, h *host) int {
	p.Helper()
	open, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", h.cmd.Process.Pid))
	p.noError(err)
	return len(open)
}

var faults = regexp.MustCompile(`(?i)busy|locked|"level":"error"|panic`)

// noFault checks that no log speaks of contention or of something that went
// wrong.
func (p *place) noFault(hosts ...*host) {
	p.Helper()
	var logs []string
	for _, h := range hosts {
		logs = append(logs, h.log)
	}
	p.noError(filepath.WalkDir(placetest.Dir(p.dir), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "thread.log" {
			logs = append(logs, path)
		}
		return err
	}))
	for _, path := range logs {
		content, err := os.ReadFile(path)
		p.noError(err)
		for line := range strings.Lines(string(content)) {
			if faults.MatchString(line) {
				p.Errorf("%s: %s", path, line)
			}
		}
	}
}

package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// The cost of a thread is measured against testdata/floor, the least that a server of
// threads can be. Both get the same calls on the same pipe and call the same model. The
// floor with the required modules linked, which does nothing with them, shows what of the
// cost is their price.

// workDirective reads a file as often as the model wants. It is signed, and signatures
// are taken strictly.
const workDirective = "```xml\n" + `<directive name="work" version="1.0.0"><metadata>
<model tier="fast" /><limits spend="1" turns="200" /><permissions><execute><tool>rye.file-system.read</tool></execute></permissions>
</metadata></directive>` + "\n```\n\nRead the file.\n"

// reader is a model that calls a tool in each turn but the last, at once.
type reader struct {
	turns int

	mu   sync.Mutex
	came []time.Time // its requests, whole
}

func (m *reader) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m.mu.Lock()
	m.came = append(m.came, time.Now())
	m.mu.Unlock()
	block, stop := `{"type":"tool_use","id":"call","name":"rye_file_system_read","input":{"path":"a.txt"}}`, "tool_use"
	if bytes.Count(body, []byte(`"tool_result"`)) >= m.turns-1 {
		block, stop = `{"type":"text","text":"done"}`, "end_turn"
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range [][2]string{
		{"message_start", `"message":{"id":"m","type":"message","role":"assistant","model":"small","content":[],"usage":{"input_tokens":9,"output_tokens":1}}`},
		{"content_block_start", `"index":0,"content_block":` + block},
		{"content_block_stop", `"index":0`},
		{"message_delta", `"delta":{"stop_reason":"` + stop + `"},"usage":{"output_tokens":5}`},
		{"message_stop", `"usage":{}`},
	} {
		_, _ = fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q,%s}\n\n", event[0], event[0], event[1])
	}
}

// take returns when the requests came since it was called last.
func (m *reader) take() []time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	came := m.came
	m.came = nil
	return came
}

// side is a server of threads, rye-mcp or the floor, in a project of its own.
type side struct {
	*wire
	model *reader
}

// sides are ready to start threads of so many turns.
type sides struct {
	ours, floor *side
	linked      *side // the floor with the required modules
}

func newSides(b *testing.B, turns int) sides {
	b.Helper()
	const floor = "./testdata/floor"
	s := sides{
		ours:   newSide(b, build(b, "."), turns, []string{"init"}, []string{"sign", "--type", "directive", "work"}),
		floor:  newSide(b, build(b, floor), turns),
		linked: newSide(b, build(b, floor, "-tags", "required"), turns),
	}
	for _, one := range []*side{s.ours, s.floor, s.linked} {
		one.warm()
	}
	return s
}

// medians measures the same of each side in turns.
func (s sides) medians(times int, took func(*side) time.Duration) (ours, floor, linked time.Duration) {
	of := func(one *side) func() time.Duration { return func() time.Duration { return took(one) } }
	each := medians(times, of(s.floor), of(s.linked), of(s.ours))
	return each[2], each[0], each[1]
}

// row is one row of the table: what something takes of each side so many times.
func (s sides) row(b *testing.B, what, durability string, goal float64, times int, took func(*side) time.Duration) {
	row(b, what, "the least that does it", durability, goal, func(b *testing.B) float64 {
		ours, floor, linked := s.medians(times, took)
		b.ReportMetric(float64(linked)/float64(floor), "x-linked")
		return float64(ours) / float64(floor)
	})
}

func newSide(b *testing.B, program string, turns int, prepare ...[]string) *side {
	b.Helper()
	return newSideWith(b, program, turns, nil, prepare...)
}

// newSideWith is newSide with more environment.
func newSideWith(b *testing.B, program string, turns int, env []string, prepare ...[]string) *side {
	b.Helper()
	root, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	model := &reader{turns: turns}
	server := httptest.NewServer(model)
	b.Cleanup(server.Close)
	home := filepath.Join(root, "home")
	p := &place{TB: b, dir: filepath.Join(root, "project"), program: program, env: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "USER_SPACE=" + home, "RYE_CACHE_DIR=" + filepath.Join(root, "cache"),
		"ANTHROPIC_BASE_URL=" + server.URL, "ANTHROPIC_API_KEY=" + testKey,
	}}
	p.env = append(p.env, env...)
	p.write(".ai/directives/work.md", []byte(workDirective))
	p.write("a.txt", []byte("hello\n"))
	p.write("../home/.ai/config/agent/store.yaml", []byte("store: {project: team/app}\n"))
	p.write("../home/.ai/config/agent/agent.yaml", []byte("threads: {max_running: 100}\nintegrity: {mode: strict}\n"))
	for _, arguments := range prepare {
		cmd := exec.Command(program, arguments...)
		cmd.Dir, cmd.Env = p.dir, p.env
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %v\n%s", arguments, err, out)
		}
	}
	s := &side{wire: p.wire(program, "--stdio", "--log-file", filepath.Join(root, "log")), model: model}
	b.Cleanup(s.end)
	return s
}

// call calls a tool, and decodes its answer.
func (s *side) call(tool string, arguments args, answer any) {
	s.p.Helper()
	line, err := json.Marshal(args{"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": args{"name": tool, "arguments": arguments}})
	s.p.noError(err)
	s.say(string(line))
	var message struct {
		Result struct {
			Content []struct{ Text string }
			IsError bool
		}
	}
	heard, err := s.lines.ReadBytes('\n')
	s.p.noError(err)
	s.p.noError(json.Unmarshal(heard, &message))
	if len(message.Result.Content) == 0 || message.Result.IsError {
		s.p.Fatalf("%s: %s", tool, heard)
	}
	s.p.noError(json.Unmarshal([]byte(message.Result.Content[0].Text), answer))
}

func (s *side) start() thread.ID {
	s.p.Helper()
	var started struct {
		ID thread.ID `json:"thread_id"`
	}
	s.call("rye_execute", args{"item_id": "work", "async": true}, &started)
	return started.ID
}

// finish waits until all threads have ended.
func (s *side) finish(ids []thread.ID) {
	s.p.Helper()
	for len(ids) > 0 {
		var waited struct {
			Pending []thread.ID
			Results map[thread.ID]struct{ Status thread.State }
		}
		s.call("wait_threads", args{"thread_ids": ids, "timeout": 60}, &waited)
		for id, result := range waited.Results {
			if result.Status.Terminal() && result.Status != thread.Completed {
				s.p.Fatalf("%s is %s", id, result.Status)
			}
		}
		ids = waited.Pending
	}
}

// run starts so many threads and waits until all have ended.
func (s *side) run(threads int) {
	s.p.Helper()
	var ids []thread.ID
	for range threads {
		ids = append(ids, s.start())
	}
	s.finish(ids)
}

// BenchmarkRatioChildren measures threads of two turns and one tool, many at once,
// from the first call of the client to the last result.
func BenchmarkRatioChildren(b *testing.B) {
	const children = 50
	newSides(b, 2).row(b, "50 threads of two turns through MCP, first call to last result", onDisk, 2, 5, func(s *side) time.Duration {
		began := time.Now()
		s.run(children)
		return time.Since(began)
	})
}

// BenchmarkRatioOne measures the start of one thread, as its client and as its model
// see it.
func BenchmarkRatioOne(b *testing.B) {
	all := newSides(b, 2)
	all.row(b, "call to first request at the model", onDisk, 2.5, 25, (*side).toRequest)
	all.row(b, "call to answer with a thread id", onDisk, 2.5, 25, func(s *side) time.Duration {
		began := time.Now()
		id := s.start()
		took := time.Since(began)
		s.finish([]thread.ID{id})
		return took
	})
}

// BenchmarkRatioToolTurn measures a turn with a built-in tool from one request at the
// model to the next, in the processes of threads.
func BenchmarkRatioToolTurn(b *testing.B) {
	const turns = 50
	newSides(b, turns).row(b, "turn of a thread, built-in tool, zero-latency model", "checkpoint=fdatasync,cost=NORMAL", 1.5, 7, func(s *side) time.Duration {
		s.finish([]thread.ID{s.start()})
		came := s.model.take()
		var each []time.Duration
		for i := range came[1:] {
			each = append(each, came[i+1].Sub(came[i]))
		}
		return median(each)
	})
}

// BenchmarkRatioProcessor measures what the processes of threads of two turns take of
// the processors, from start to end. The system counts it for the server, which has
// waited for them; only Linux tells.
func BenchmarkRatioProcessor(b *testing.B) {
	const threads = 20
	all := newSides(b, 2)
	b.Run("processor time of a thread of two turns/user and system, start to end/", func(b *testing.B) {
		var ours, floor, linked time.Duration
		for b.Loop() {
			ours, floor, linked = all.medians(5, func(s *side) time.Duration { return s.spent(b, threads) })
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(ours.Seconds()*1000, "ms")
		b.ReportMetric(25, "ms-goal")
		b.ReportMetric(floor.Seconds()*1000, "ms-floor")
		b.ReportMetric(linked.Seconds()*1000, "ms-linked")
	})
}

// spent is what the process of a thread takes, of so many that run at once.
func (s *side) spent(b *testing.B, threads int) time.Duration {
	b.Helper()
	before := ofChildren(b, s.cmd.Process.Pid)
	s.run(threads)
	s.p.until(func() (bool, string) {
		left, err := processesIn(s.p.dir)
		return err == nil && len(left) == 1, fmt.Sprintf("processes: %s (%v)", strings.Join(left, "\n"), err)
	})
	return (ofChildren(b, s.cmd.Process.Pid) - before) / time.Duration(threads)
}

// ofChildren is the processor time of those children of a process that it has waited
// for.
func ofChildren(b *testing.B, pid int) (spent time.Duration) {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Skip(err)
	}
	const tick, cutime, cstime = 10 * time.Millisecond, 16 - 3, 17 - 3 // see proc(5); the third field is the first after the name
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	for _, field := range slices.Concat(fields[cutime:cutime+1], fields[cstime:cstime+1]) {
		ticks, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		spent += time.Duration(ticks) * tick
	}
	return spent
}

package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/telemetry"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// collector is an endpoint of OTLP that keeps what it is sent.
type collector struct {
	*httptest.Server

	mu     sync.Mutex
	header http.Header         // of the last request
	spans  map[string][]string // what came under each id, as JSON
	names  map[string]string   // of spans, by id
	above  map[string]string   // their parents
	traces map[string]bool
}

// tracedPlace is a place that is removed when its last sender has ended, which goes on when
// the spans have come.
func tracedPlace(t *testing.T) *place {
	p := newPlace(t, tracedFamily)
	t.Cleanup(func() {
		p.until(func() (bool, string) {
			left, err := processesIn(filepath.Dir(p.dir))
			return err == nil && len(left) == 0, fmt.Sprint("still there: ", left, err)
		})
	})
	return p
}

func newCollector(t *testing.T) *collector {
	c := &collector{spans: map[string][]string{}, names: map[string]string{}, above: map[string]string{}, traces: map[string]bool{}}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	var sent struct {
		ResourceSpans []struct {
			ScopeSpans []struct{ Spans []json.RawMessage }
		}
	}
	if err != nil || json.Unmarshal(body, &sent) != nil || r.URL.Path != "/v1/traces" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.header = r.Header
	for _, rs := range sent.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			for _, raw := range ss.Spans {
				var s struct{ TraceID, SpanID, ParentSpanID, Name string }
				_ = json.Unmarshal(raw, &s)
				c.spans[s.SpanID] = append(c.spans[s.SpanID], string(raw))
				c.names[s.SpanID], c.above[s.SpanID], c.traces[s.TraceID] = s.Name, s.ParentSpanID, true
			}
		}
	}
	_, _ = w.Write([]byte("{}"))
}

// named are the ids of the spans of a name.
func (c *collector) named(name string) (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, n := range c.names {
		if n == name {
			ids = append(ids, id)
		}
	}
	return ids
}

// wantNamed waits until so many spans of a name have come.
func (c *collector) wantNamed(p *place, name string, want int) {
	p.Helper()
	p.until(func() (bool, string) {
		log, _ := os.ReadFile(filepath.Join(p.dir, ".ai", "state", "threads", "traces.log"))
		return len(c.named(name)) == want, name + " has not come; " + string(log)
	})
}

const tracedFamily = `
-- .ai/directives/above.md --
` + "```xml" + `
<directive name="above" version="1.0.0"><metadata><model tier="fast" /><limits spawns="2" />
<permissions><execute><directive>below</directive></execute></permissions></metadata></directive>
` + "```" + `

Be above.
-- .ai/directives/below.md --
` + "```xml" + `
<directive name="below" version="1.0.0"><metadata><model tier="fast" /><limits spend="0.05" />
<permissions><execute><tool>rye.bash</tool></execute></permissions></metadata></directive>
` + "```" + `

Be below.
-- model.yaml --
turns:
  - match: {first: Be above, turn: 1}
    tool_calls:
      - {name: rye_execute, input: {item_type: directive, item_id: below}}
      - {name: rye_execute, input: {item_type: directive, item_id: below}}
  - match: {first: Be below, turn: 1}
    tool_calls: [{name: rye_bash, input: {command: "env; cat /proc/$PPID/environ | tr '\\0' '\\n'; true"}}]
  - {text: done, usage: {input_tokens: 10, output_tokens: 5}}
`

// One trace holds a thread and its two children, three processes that tell each other
// nothing, and is that of who has started it. The credentials of the endpoint are in no
// environment.
func TestTraceOverProcesses(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const header = "credential-of-the-endpoint"
	c, p := newCollector(t), tracedPlace(t)
	p.env = append(p.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_EXPORTER_OTLP_HEADERS=x-key="+header,
		"TRACEPARENT=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	p.command("run", "above")
	c.wantNamed(p, "invoke_agent above", 1)
	c.wantNamed(p, "invoke_agent below", 2)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.traces) != 1 || !c.traces["4bf92f3577b34da6a3ce929d0e0e4736"] || c.header.Get("X-Key") != header {
		t.Errorf("traces %v, header %q", c.traces, c.header.Get("X-Key"))
	}
	for id, parent := range c.above {
		if parent == "00f067aa0ba902b7" && c.names[id] == "invoke_agent above" {
			continue
		}
		if c.names[parent] == "" {
			t.Errorf("the parent of %s is not there", c.names[id])
		}
		if c.names[id] == "invoke_agent below" && c.names[parent] != "execute_tool rye_execute" {
			t.Errorf("a child is below %s", c.names[parent])
		}
		if n := len(c.spans[id]); n != 1 {
			t.Errorf("%s came %d times", c.names[id], n)
		}
	}
	if found := p.holding(header); len(found) > 0 {
		t.Errorf("the credential is in %v", found)
	}
}

// holding are the files of the project that have a text in them.
func (p *place) holding(text string) (found []string) {
	p.noError(filepath.WalkDir(p.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(content), text) {
			found = append(found, path)
		}
		return nil
	}))
	return found
}

// A sender is killed when its spans were accepted and nothing says so yet. The next one
// sends the same again: nothing is there twice.
func TestTracesAfterAKill(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, point := range []struct {
		at    string
		times int
	}{{string(telemetry.BeforeSend), 1}, {string(telemetry.AfterSend), 2}} {
		c, p := newCollector(t), tracedPlace(t)
		p.env = append(p.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL)
		whole := p.env
		env, died := p.dieAt(telemetry.BeforeSend, 1)
		if point.at == string(telemetry.AfterSend) {
			env, died = p.dieAt(telemetry.AfterSend, 1)
		}
		p.env = append(slices.Clone(whole), env...)
		p.command("run", "below")
		p.until(func() (bool, string) { return died(), "nobody died at " + point.at })
		first := c.named("invoke_agent below")
		p.env = whole
		p.command("run", "below")
		c.wantNamed(p, "invoke_agent below", 2)
		c.mu.Lock()
		for _, id := range first {
			if came := c.spans[id]; len(came) != point.times || came[0] != came[len(came)-1] {
				t.Errorf("killed at %s: it came %d times\n%s", point.at, len(came), strings.Join(came, "\n"))
			}
		}
		c.mu.Unlock()
	}
}

// TestAttackProjectSetsEndpoint: a repository names an endpoint for traces in its settings and in its .env, which the person accepts.
// The listener there hears nothing, and nothing is noted to be sent.
func TestAttackProjectSetsEndpoint(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	c := newCollector(t)
	p := stranger(t, says, map[string]string{
		"telemetry.yaml":       "endpoint: " + c.URL + "\n",
		"agent/telemetry.yaml": "endpoint: " + c.URL + "\n",
		"agent/agent.yaml":     "environment: {OTEL_EXPORTER_OTLP_ENDPOINT: " + c.URL + "}\n",
	})
	p.write(".env", []byte("OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL+"\n"))
	p.command("run", "shell")
	p.command("trust", "--yes")
	p.command("run", "shell")
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.traces) != 0 {
		t.Errorf("the listener was sent %v", c.names)
	}
	p.wantNoFile(filepath.Join(".ai", "state", "threads", ".traces"))
	p.wantNoFile(filepath.Join(".ai", "state", "threads", "traces.log"))
}

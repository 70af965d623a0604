package loop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/tools/builtin/shell"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// logBuffer takes a log from several goroutines.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// lines are those of a level with a message, decoded.
func (l *logBuffer) lines(t *testing.T, level zerolog.Level, message string) []map[string]any {
	t.Helper()
	var all []map[string]any
	scan := bufio.NewScanner(bytes.NewReader(l.text.Bytes()))
	for scan.Scan() {
		var line map[string]any
		if err := json.Unmarshal(scan.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", scan.Text(), err)
		}
		if line["level"] == level.String() && line["message"] == message {
			all = append(all, line)
		}
	}
	return all
}

// TestLog: what a thread does can be followed in its log.
func TestLog(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script("turns:\n  - {times: 1, error: {status: 529, type: overloaded_error, message: busy}}\n" +
		"  - {match: {turn: 1}, tool_calls: [{name: test_echo, input: {word: a}}, {name: test_fail, input: {}}]}\n  - {text: done}\n")
	var log logBuffer
	d := h.deps(h.register(job{}))
	d.Log = zerolog.New(&log)
	if _, err := Run(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		level   zerolog.Level
		message string
		lines   int
		fields  []string
	}{
		{zerolog.InfoLevel, "thread started", 1, []string{"item", "model", "limits"}},
		{zerolog.WarnLevel, "the model is asked again", 1, []string{"error", "category", "wait_ms", "turn"}},
		{zerolog.DebugLevel, "model called", 3, []string{"turn", "model_ms", "tool_calls", "ok"}},
		{zerolog.DebugLevel, "tool called", 2, []string{"tool", "ms", "ok"}},
		{zerolog.DebugLevel, "turn ended", 2, []string{"turn", "spend"}},
		{zerolog.InfoLevel, "thread ended", 1, []string{"status", "turns", "spend"}},
	} {
		lines := log.lines(t, want.level, want.message)
		if len(lines) != want.lines {
			t.Errorf("%d lines %q, want %d\n%s", len(lines), want.message, want.lines, log.text.String())
			continue
		}
		for _, field := range want.fields {
			if _, there := lines[0][field]; !there {
				t.Errorf("%q has no %s: %v", want.message, field, lines[0])
			}
		}
	}
}

// TestTrace: the id of the request that started a thread reaches its tools and
// what it starts.
func TestTrace(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.tools.more = []tool.Tool{shell.New(nil)}
	h.script("turns:\n  - match: {turn: 1}\n    tool_calls:\n" +
		"      - {name: rye_bash, input: {command: 'echo trace=$RYE_TRACE_ID'}}\n" +
		"      - {name: rye_execute, input: {item_type: directive, item_id: test/task, async: true}}\n  - {text: done}\n")
	rec := h.run(job{
		capabilities: []string{"rye.execute.tool.rye.bash", "rye.execute.directive.test.task"},
		meta:         func(m *thread.Meta) { m.TraceID = "req-7" },
	})
	found := false
	for _, result := range h.results(rec.ThreadID) {
		found = found || strings.Contains(result.Text, "trace=req-7")
	}
	if !found {
		t.Errorf("results %+v", h.results(rec.ThreadID))
	}
	if len(h.threads.callers) != 1 || h.threads.callers[0].Env.TraceID != "req-7" {
		t.Errorf("callers %+v", h.threads.callers)
	}
}

// TestNoSecrets: a provider's key and the values of its headers reach no file,
// log, argument or tool, also when the provider sends them back in its errors.
func TestNoSecrets(t *testing.T) {
	secrets := map[string]string{"key": "sk-never-show-this-key", "header": "tok-never-show-this-either"}
	h := newHouse(t)
	h.tools.more = []tool.Tool{shell.New(nil)}
	t.Setenv("LOOP_TEST_KEY", secrets["key"])
	h.script("turns:\n  - {times: 1, error: {status: 529, type: overloaded_error, message: 'busy " + secrets["key"] + "'}}\n" +
		"  - {match: {turn: 1}, tool_calls: [{name: rye_bash, input: {command: 'env; cat /proc/*/cmdline 2>/dev/null | tr \"\\\\0\" \" \"; true'}}]}\n" +
		"  - {error: {status: 401, type: authentication_error, message: 'bad " + secrets["header"] + " and " + secrets["key"] + "'}}\n")
	var log logBuffer
	d := h.deps(h.register(job{model: "own/small", capabilities: []string{"rye.execute.tool.rye.bash"}}))
	d.Log = zerolog.New(&log)
	// Settings with a key are the user's: a project may not send it anywhere.
	roots := h.roots()
	h.writeAt(roots.User, ".ai/config/agent/providers/own.yaml", "api: anthropic\nbase_url: "+h.server.BaseURL()+
		"\napi_key_env: LOOP_TEST_KEY\nheaders: {X-Gateway: 'Bearer "+secrets["header"]+"'}"+plainProvider)
	d.Providers = provider.NewSource(os.Getenv).With(config.New(roots).Read())
	rec, err := Run(t.Context(), d)
	if err != nil || rec.Status != thread.Error {
		t.Fatalf("%s, %v", rec.Status, err)
	}
	if !strings.Contains(rec.Outcome.Error.Message, "[redacted]") {
		t.Errorf("the provider was not sent what it sends back: %s", rec.Outcome.Error.Message)
	}
	texts := map[string]string{"the log": log.text.String()}
	if err := h.addFiles(texts); err != nil || len(texts) < 6 {
		t.Fatalf("%d texts, %v", len(texts), err)
	}
	for where, text := range texts {
		for what, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("the %s is in %s", what, where)
			}
		}
	}
}

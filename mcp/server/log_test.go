package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
)

// logBuffer is a log that tests read while the server writes.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

type logLine struct {
	Level, Tool, Method, Outcome string
	TraceID                      string `json:"trace_id"`
}

func (l *logBuffer) lines(t *testing.T) (lines []logLine) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for dec := json.NewDecoder(bytes.NewReader(l.buf.Bytes())); dec.More(); {
		var line logLine
		if err := dec.Decode(&line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	return lines
}

// Every call of a tool is one line at level info, with the id its handler sees.
func TestCallsAreLoggedWithTheirTrace(t *testing.T) {
	t.Parallel()
	var (
		log    logBuffer
		made   int
		making sync.Mutex
	)
	s := server.New(server.Options{
		OutputSchemas: true,
		Log:           zerolog.New(&log).Level(zerolog.InfoLevel), MapError: mapError,
		Trace: func() string {
			making.Lock()
			defer making.Unlock()
			made++
			return fmt.Sprintf("trace-%d", made)
		},
	})
	server.Add(s, fail)
	seen := make(chan string, 1)
	server.Add(s, server.Tool[blockIn, blockOut]{
		Name: "trace", Description: "Tells its trace.", Annotations: server.Annotations{Title: "Trace"},
		Handle: func(ctx context.Context, _ server.Call, _ blockIn) (blockOut, error) {
			seen <- server.TraceFrom(ctx)
			return blockOut{Success: true}, nil
		},
	})
	c := servertest.Start(t, s)
	for _, want := range []logLine{
		{"info", "trace", "tools/call", "ok", ""},
		{"info", "fail", "tools/call", "not_found", ""},
		{"info", "nothing", "tools/call", "error", ""},
	} {
		before := len(log.lines(t))
		c.Call(want.Tool, failIn{How: "fault"}.unless(want.Tool != "fail"))
		lines := log.lines(t)[before:]
		if len(lines) != 1 || lines[0].TraceID == "" {
			t.Fatalf("%s: lines %+v, want one with a trace", want.Tool, lines)
		}
		if want.Tool == "trace" {
			want.TraceID = <-seen
		} else {
			want.TraceID = lines[0].TraceID
		}
		if lines[0] != want {
			t.Errorf("line %+v, want %+v", lines[0], want)
		}
	}
}

// unless returns no arguments when none are wanted.
func (in failIn) unless(none bool) any {
	if none {
		return struct{}{}
	}
	return in
}

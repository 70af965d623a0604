package control

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// ofTheUser writes a settings file of the user.
func (s *scene) ofTheUser(file, text string) {
	s.Helper()
	path := filepath.Join(filepath.Dir(s.project), "user", ".ai", filepath.FromSlash(file))
	s.noError(os.MkdirAll(filepath.Dir(path), 0o700))
	s.noError(os.WriteFile(path, []byte(text), 0o600))
}

// TestAttackRaisedLimits: a model gives limit_overrides, or answers a question of its own thread, with more than the directive was signed for. It is refused with the valid maximum, which only the person's own settings or the person at a terminal can raise.
func TestAttackRaisedLimits(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.write("config/agent/resilience.yaml", "limits: {spend: 0.4, max_override: {spend: 1000000}}\n")
	asClient := func(directive string, limits map[string]float64) (view.Started, error) {
		got, err := Threads{s.c}.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: directive, Async: true, Limits: limits})
		started, _ := got.(view.Started)
		return started, err
	}
	refused := func(err error, most float64) {
		s.Helper()
		fault := new(tool.Fault)
		if !errors.As(err, &fault) || fault.Code != tool.CodeInvalidLimits || fault.Details["valid_maximum"] != most {
			s.Errorf("got %v, want a maximum of %v", err, most)
		}
	}
	_, err := asClient("work", map[string]float64{"spend": 100}) // signed for 0.01; the user's own default is 0.5
	refused(err, 0.5)
	_, err = asClient("work", map[string]float64{"spawns": 51}) // signed for 50, and the user's default is 20
	refused(err, 50)
	s.ofTheUser("config/agent/resilience.yaml", "limits: {max_override: {spend: 2}}\n")
	_, err = asClient("work", map[string]float64{"spend": 2.01})
	refused(err, 2)
	root, err := asClient("work", map[string]float64{"spend": 2})
	s.noError(err)
	s.order(root.ThreadID, "claim")
	if got := s.meta(root.ThreadID).Limits.Spend; got != 2_000_000 {
		s.Errorf("raised to %s", got)
	}
	// Below a thread the same settings raise nothing.
	_, err = Threads{s.c}.Start(s.ctx, inThread(root.ThreadID), action.StartRequest{Directive: "work", Async: true, Limits: map[string]float64{"spend": 0.02}})
	refused(err, 0.01)
	s.order(root.ThreadID, "complete")
	_, err = s.c.Continue.Resume(s.ctx, continuation.ResumeRequest{ThreadID: root.ThreadID, Message: "on", Limits: item.LimitSet{"spend": 3.0}})
	if err == nil || !strings.Contains(err.Error(), "at most 2") && code(err) != tool.CodeUnsupported {
		s.Errorf("resumed with more: %v", err)
	}
	// A person at a terminal raises any root.
	started, err := s.c.Start(s.ctx, action.Caller{Person: true}, action.StartRequest{Directive: "work", Limits: item.LimitSet{"spend": 9.0}})
	s.noError(err)
	s.order(started.ThreadID, "claim")
	// A question of a root, answered by a call and by a person.
	s.asks(started.ThreadID)
	more := ApproveRequest{ThreadID: started.ThreadID, Decision: thread.Raise, Limits: item.LimitSet{"turns": 99.0}}
	if _, err := s.c.Approve(s.ctx, more); code(err) != tool.CodeInvalidLimits || !strings.Contains(err.Error(), "the most it can be raised to here is 15") {
		s.Errorf("approved by a call: %v", err)
	}
	more.Person = true
	if _, err := s.c.Approve(s.ctx, more); err != nil {
		s.Errorf("approved by a person: %v", err)
	}
}

// TestRequestKeyNamesACall: a key with other inputs, limits or model is refused, and
// the same call in other words is the same.
func TestRequestKeyNamesACall(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.write("directives/ask.md", strings.Replace(
		"```xml\n<directive name=\"ask\" version=\"1.0.0\">\n<metadata><model tier=\"fast\"/></metadata>\n<inputs>INPUTS</inputs>\n</directive>\n```\nAsk.\n",
		"INPUTS", `<input name="who" type="string">whom</input><input name="n" type="integer">how many</input>`, 1))
	req := func() action.StartRequest {
		return action.StartRequest{
			Directive: "ask", RequestKey: "k", Inputs: map[string]any{"who": "Ada", "n": nil}, Limits: item.LimitSet{"max_turns": 3},
		}
	}
	first, err := s.c.Start(s.ctx, action.Caller{}, req())
	s.noError(err)
	s.order(first.ThreadID, "claim")
	same := req()
	same.Inputs, same.Limits = map[string]any{"who": "Ada"}, item.LimitSet{"turns": 3.0}
	if again, err := s.c.Start(s.ctx, action.Caller{}, same); err != nil || again.ThreadID != first.ThreadID || !again.Existing {
		s.Errorf("the same: %+v, %v", again, err)
	}
	for name, change := range map[string]func(*action.StartRequest){
		"input":      func(r *action.StartRequest) { r.Inputs["who"] = "Bob" },
		"more input": func(r *action.StartRequest) { r.Inputs["n"] = 2 },
		"limit":      func(r *action.StartRequest) { r.Limits = item.LimitSet{"turns": 2} },
		"no limit":   func(r *action.StartRequest) { r.Limits = nil },
		"model":      func(r *action.StartRequest) { r.Model = "general" },
		"item":       func(r *action.StartRequest) { r.Directive = "idle" },
	} {
		other := req()
		change(&other)
		if _, err := s.c.Start(s.ctx, action.Caller{}, other); code(err) != tool.CodeRequestKeyReused {
			s.Errorf("another %s: %v", name, err)
		}
	}
	run := func(command string) error {
		_, err := Threads{s.c}.StartTool(s.ctx, action.Caller{}, action.ToolRequest{
			ToolID: "rye/bash", RequestKey: "t", Parameters: tool.Object(`{"command":"` + command + `"}`),
		})
		return err
	}
	s.noError(run("true"))
	s.noError(run("true"))
	if err := run("false"); code(err) != tool.CodeRequestKeyReused {
		s.Errorf("another command: %v", err)
	}
}

package control

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/permission"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/builtin/file"
	"github.com/rye-mcp/rye-mcp/tools/executor"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// asModel makes a call of rye_execute as the model of a thread makes it: with
// whatever JSON it likes.
func (s *scene) asModel(self thread.ID, arguments string) (any, error) {
	s.Helper()
	tools, err := executor.New(file.Tools(file.Deps{})...)
	s.noError(err)
	meta, err := s.folder(self).ReadMeta(s.c.Threads.Records.Seal())
	s.noError(err)
	grant := permission.Grant{Own: meta.Own(), Ceiling: meta.Ceiling}
	actions := action.New(action.Deps{
		Resolver: s.c.Planner.Resolver, Trust: s.c.Settings.Trust, Executor: tools, Threads: OfOperations(s.c), Now: time.Now,
	})
	caller := action.Caller{
		Env: tool.Env{Project: s.project, ThreadID: self}, InThread: true,
		Allow: func(required string) error {
			if denied := grant.Missing(required); denied != nil {
				return tool.Faultf(tool.CodePermissionDenied, "%w", denied)
			}
			return nil
		},
	}
	for _, t := range actions.Tools(caller) {
		if t.Definition().ID == "rye_execute" {
			return t.Call(s.ctx, caller.Env, json.RawMessage(arguments))
		}
	}
	s.Fatal("there is no rye_execute")
	return nil, nil
}

// attackScene is a thread with a grandparent, and a stranger beside it.
func attackScene(t *testing.T) (s *scene, self, root, stranger thread.ID) {
	t.Helper()
	s = newScene(t)
	const operates = startsAny + "<tool>rye.agent.threads.*</tool>"
	s.write("directives/top.md", fmt.Sprintf(directive, "top", "", operates))
	root, stranger = s.start("top", ""), s.start("top", "")
	s.write("directives/middle.md", fmt.Sprintf(directive, "middle",
		`<limits turns="4" tokens="1000" spend="0.2" duration_seconds="60" spawns="5" depth="3" />`,
		operates))
	s.write("directives/loud.md", fmt.Sprintf(directive, "loud", "", startsAny+"<tool>rye.bash</tool>"))
	return s, s.start("middle", root), root, stranger
}

// No model decides what the runtime decides about a child: a call that tries is
// refused, and nothing is started.
func TestSpawnAttacksAreRefused(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s, self, root, stranger := attackScene(t)
	older := func(parameters string) string {
		return `{"item_id":"` + action.ThreadDirectiveID + `","async":true,"parameters":{"directive_id":"work",` + parameters + `}}`
	}
	operate := func(parameters string) string {
		return `{"item_id":"` + action.OrchestratorID + `","parameters":{` + parameters + `}}`
	}
	spawn := func(field string) string { return `{"item_id":"work","async":true,` + field + `}` }
	for name, c := range map[string]struct {
		arguments string
		code      tool.Code
		says      string
	}{
		"another parent":                {spawn(`"parent_id":"` + string(stranger) + `"`), tool.CodeBadArguments, `unknown property "parent_id"`},
		"another parent, older name":    {spawn(`"parent_thread_id":"` + string(stranger) + `"`), tool.CodeBadArguments, `unknown property "parent_thread_id"`},
		"another parent, older form":    {older(`"parent_thread_id":"` + string(stranger) + `"`), tool.CodeUnsupported, "a thread is the parent of what it starts"},
		"itself as parent, older form":  {older(`"parent_thread_id":"` + string(self) + `"`), tool.CodeUnsupported, "a thread is the parent of what it starts"},
		"the parent's limits":           {spawn(`"parent_limits":{"spend":100}`), tool.CodeBadArguments, `unknown property "parent_limits"`},
		"the parent's limits, older":    {older(`"parent_limits":{"spend":100}`), tool.CodeBadArguments, `unknown property "parent_limits"`},
		"capabilities":                  {spawn(`"capabilities":["rye.*"]`), tool.CodeBadArguments, `unknown property "capabilities"`},
		"capabilities, older form":      {older(`"capabilities":["rye.*"]`), tool.CodeBadArguments, `unknown property "capabilities"`},
		"the parent's capabilities":     {spawn(`"parent_capabilities":["rye.*"]`), tool.CodeBadArguments, `unknown property "parent_capabilities"`},
		"depth":                         {spawn(`"depth":9`), tool.CodeBadArguments, `unknown property "depth"`},
		"an id of its choice":           {spawn(`"thread_id":"work/mine"`), tool.CodeBadArguments, `unknown property "thread_id"`},
		"hidden among the inputs":       {spawn(`"parameters":{"parent_limits":{"spend":100}}`), tool.CodeInvalidInputs, "parent_limits"},
		"hidden among the limits":       {spawn(`"limit_overrides":{"capabilities":1}`), tool.CodeInvalidLimits, "capabilities"},
		"less than nothing":             {spawn(`"limit_overrides":{"spend":-1}`), tool.CodeInvalidLimits, "spend"},
		"another project":               {spawn(`"project_path":"/"`), tool.CodeOutsideProject, s.project},
		"a field twice":                 {`{"item_id":"work","item_id":"work","parent_id":"x"}`, tool.CodeBadArguments, `unknown property "parent_id"`},
		"a field in another case":       {spawn(`"Parent_ID":"` + string(stranger) + `"`), tool.CodeBadArguments, `unknown property "Parent_ID"`},
		"stop a stranger":               {operate(`"operation":"cancel_thread","thread_id":"` + string(stranger) + `"`), tool.CodePermissionDenied, "was not started below"},
		"kill its parent":               {operate(`"operation":"kill_thread","thread_id":"` + string(root) + `"`), tool.CodePermissionDenied, "was not started below"},
		"list as somebody else":         {operate(`"operation":"list_active","as":"` + string(root) + `"`), tool.CodeBadArguments, `unknown property "as"`},
		"a tool it may not use":         {`{"item_type":"tool","item_id":"rye/bash","parameters":{"command":"id"}}`, tool.CodePermissionDenied, "lacks the capability rye.execute.tool.rye.bash"},
		"a tool in the background":      {`{"item_type":"tool","item_id":"rye/bash","async":true,"parameters":{"command":"id"}}`, tool.CodePermissionDenied, "lacks the capability rye.execute.tool.rye.bash"},
		"undeclared, in the background": {`{"item_type":"tool","item_id":"rye/file-system/read","async":true,"parameters":{"path":"x","as":"root"}}`, tool.CodeBadArguments, `unknown property "as"`},
	} {
		t.Run(name, func(t *testing.T) { // not parallel: the scene ends with its test
			_, err := s.asModel(self, c.arguments)
			if code(err) != c.code || err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v; want %s: %s", code(err), err, c.code, c.says)
			}
		})
	}
	if n := s.row(self).SpawnCount; n != 0 {
		t.Errorf("%d children", n)
	}
	s.wantState(thread.Running, self, root, stranger)
}

// A model gets what it may ask for within what its thread has.
func TestSpawnAttacksGainNothing(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s, self, _, stranger := attackScene(t)
	above, err := s.folder(self).ReadMeta(s.c.Threads.Records.Seal())
	s.noError(err)
	start := func(arguments string) thread.Meta {
		t.Helper()
		result, err := s.asModel(self, arguments)
		s.noError(err)
		started, ok := result.(view.Started)
		if !ok || started.Existing {
			t.Fatalf("%s: %+v", arguments, result)
		}
		meta, err := s.folder(started.ThreadID).ReadMeta(s.c.Threads.Records.Seal())
		s.noError(err)
		if rec := s.row(started.ThreadID); meta.ParentID != self || rec.ParentID != self {
			t.Errorf("%s: the parent is %s and %s", arguments, meta.ParentID, rec.ParentID)
		}
		return meta
	}
	for _, more := range []string{"turns", "tokens", "spend", "duration_seconds", "spawns", "depth"} {
		if _, err := s.asModel(self, `{"item_id":"loud","async":true,"limit_overrides":{"`+more+`":1000000}}`); code(err) != tool.CodeInvalidLimits {
			t.Errorf("more %s: %s: %v", more, code(err), err)
		}
	}
	greedy := start(`{"item_id":"loud","async":true,"limit_overrides":{"spend":0.19}}`)
	want := greedy.Limits
	want.Turns, want.Tokens, want.Spend = min(want.Turns, above.Limits.Turns), min(want.Tokens, above.Limits.Tokens), 190_000
	want.DurationSeconds = min(want.DurationSeconds, above.Limits.DurationSeconds)
	want.Spawns, want.Depth = min(want.Spawns, above.Limits.Spawns), above.Limits.Depth-1
	if greedy.Limits != want {
		t.Errorf("limits %+v below %+v", greedy.Limits, above.Limits)
	}
	grant := permission.Grant{Own: greedy.Own(), Ceiling: greedy.Ceiling}
	if denied := grant.Missing("rye.execute.tool.rye.bash"); denied == nil || denied.Ancestor != 1 {
		t.Errorf("its parent has no shell, and the child: %v", denied)
	}
	if _, err := s.asModel(self, `{"item_id":"loud","async":true,"limit_overrides":{"spend":0.49}}`); code(err) != tool.CodeBudgetExhausted {
		t.Errorf("more than the parent has left: %s: %v", code(err), err)
	}

	// A key that others have used starts a thread of the model's own.
	outside, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "work", Parent: stranger, RequestKey: "k"})
	s.noError(err)
	for _, key := range []string{"k", string(stranger) + " k"} {
		if own := start(fmt.Sprintf(`{"item_id":"work","async":true,"limit_overrides":{"spend":0.001},"request_key":%q}`, key)); own.ThreadID == outside.ThreadID {
			t.Errorf("the key %q gives the stranger's thread", key)
		}
	}
}

package memory_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/builtin/memory"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// asked is a memory that only notes what it is asked.
type asked struct {
	memory.Memory

	question memory.Question
	new      memory.New
	by       memory.Writer
	answer   memory.Recalled
	wrote    memory.Wrote
}

func (a *asked) Recall(_ context.Context, q memory.Question) (memory.Recalled, error) {
	a.question = q
	return a.answer, nil
}

func (a *asked) Write(_ context.Context, by memory.Writer, n memory.New) (memory.Wrote, error) {
	a.by, a.new = by, n
	return a.wrote, nil
}

// tools are those over a memory; nil: it is off.
func tools(a *asked) map[string]tool.Tool {
	deps := memory.Deps{
		Off: func() bool { return a == nil },
		Open: func(context.Context, tool.Env) (memory.Memory, error) {
			if a == nil {
				return nil, memory.ErrOff
			}
			return a, nil
		},
		Writer: func(_ context.Context, id thread.ID) (memory.Writer, error) {
			return memory.Writer{By: memory.ByThread, Thread: id, ChainRoot: "root-of-" + id, Directive: "d"}, nil
		},
		MayAskAll: func(_ context.Context, id thread.ID) error {
			if id == "stranger" {
				return tool.Faultf(tool.CodePermissionDenied, "no")
			}
			return nil
		},
		Subject: func(context.Context, thread.ID) (string, error) { return "what the directive is about", nil },
	}
	all := map[string]tool.Tool{}
	for _, t := range memory.Tools(deps) {
		all[t.Definition().ID] = t
	}
	return all
}

// Off means off: each tool says so, and adds nothing to a prompt.
func TestOff(t *testing.T) {
	t.Parallel()
	args := map[string]string{
		memory.WriteID: `{"kind":"decision","title":"T","text":"x"}`, memory.RecallID: `{"query":"x","remind":true}`, memory.ListID: `{}`,
		memory.ForgetID: `{"key":"k"}`, memory.IndexThreadID: `{"thread_id":"a"}`,
	}
	for id, off := range tools(nil) {
		result, err := off.Call(t.Context(), tool.Env{ThreadID: "a"}, json.RawMessage(args[id]))
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		text, err := json.Marshal(result)
		quoter, quotes := result.(tool.Quoter)
		if err != nil || !strings.Contains(string(text), "memory is off") || !quotes || quoter.ForPrompt() != "" {
			t.Errorf("%s: %s", id, text)
		}
		if d := off.Definition(); d.Off == nil || !d.Off() {
			t.Errorf("%s is offered", id)
		}
	}
}

func TestRecallAsksForTheDirective(t *testing.T) {
	t.Parallel()
	a := &asked{answer: memory.Recalled{Knowledge: "<knowledge>", Count: 1}}
	recall := tools(a)[memory.RecallID]
	result, err := recall.Call(t.Context(), tool.Env{ThreadID: "one"}, json.RawMessage(`{"project":"*","kinds":["decision"],"remind":true}`))
	if err != nil {
		t.Fatal(err)
	}
	q := a.question
	if q.Text != "what the directive is about" || q.Thread != "one" || q.ChainRoot != "root-of-one" || !q.Anywhere || len(q.Kinds) != 1 {
		t.Errorf("%+v", q)
	}
	quoter, ok := result.(tool.Quoter)
	if !ok || !strings.HasPrefix(quoter.ForPrompt(), "<knowledge>\n") || !strings.Contains(quoter.ForPrompt(), "rye_memory_write") {
		t.Errorf("%+v", result)
	}
	if _, err := recall.Call(t.Context(), tool.Env{ThreadID: "stranger"}, json.RawMessage(`{"project":"*"}`)); err == nil {
		t.Error("anybody may ask all projects")
	}
	for args, env := range map[string]tool.Env{`{"project":"other"}`: {ThreadID: "one"}, `{}`: {}, `{"kinds":["rumour"]}`: {ThreadID: "one"}} {
		if _, err := recall.Call(t.Context(), env, json.RawMessage(args)); err == nil {
			t.Errorf("%s is taken", args)
		} else if f, ok := errors.AsType[*tool.Fault](err); !ok || f.Code != tool.CodeBadArguments {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// TestWriteTellsOfNear: a thread whose entry is near to another is told which, and what to do.
func TestWriteTellsOfNear(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		wrote memory.Wrote
		want  string
	}{
		{memory.Wrote{Key: "k"}, ""},
		{memory.Wrote{Key: "k", Note: "no vector"}, "no vector"},
		{memory.Wrote{Key: "k", Near: "old"}, "old says nearly the same, or the opposite, and both stand; if yours takes its place, write it again with supersedes: [old]"},
		{memory.Wrote{Key: "k", Near: "old", Note: "no vector"}, "write it again with supersedes: [old]; no vector"},
	} {
		got, err := tools(&asked{wrote: tt.wrote})[memory.WriteID].Call(t.Context(), tool.Env{ThreadID: "one"}, json.RawMessage(`{"kind":"decision","title":"T","text":"x"}`))
		if w, ok := got.(memory.Wrote); err != nil || !ok || w.Near != tt.wrote.Near || !strings.HasSuffix(w.Note, tt.want) || (w.Note == "") != (tt.want == "") {
			t.Errorf("%+v: %+v, %v", tt.wrote, got, err)
		}
	}
}

// TestAttackWriterNamesItself: a model says in a call which thread, directive or project an entry is of, or that a person wrote it.
// There are no such parameters; who writes is what the runtime knows.
func TestAttackWriterNamesItself(t *testing.T) {
	t.Parallel()
	a := &asked{}
	write := tools(a)[memory.WriteID]
	for _, extra := range []string{`"by":"person"`, `"thread_id":"two"`, `"directive":"other"`, `"project":"*"`, `"key":"k"`} {
		args := `{"kind":"decision","title":"T","text":"x",` + extra + `}`
		if _, err := write.Call(t.Context(), tool.Env{ThreadID: "one"}, json.RawMessage(args)); err == nil {
			t.Errorf("%s is taken", extra)
		}
	}
	if _, err := write.Call(t.Context(), tool.Env{ThreadID: "one"}, json.RawMessage(`{"kind":"decision","title":"T","text":"x"}`)); err != nil {
		t.Fatal(err)
	}
	if a.by.Thread != "one" || a.by.By != memory.ByThread {
		t.Errorf("%+v", a.by)
	}
}

package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/loop"
	"github.com/rye-mcp/rye-mcp/runtime/recording"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// facts are what is on record beside the answers of the model. Each is given once.
type facts struct {
	artifacts map[string][]byte // by hash
	results   []transcript.ToolCallResult
	injected  []transcript.ContextInjected
	hooks     []transcript.HookFired
	answers   []thread.Answer
	messages  map[int][]transcript.Message // by the turn before whose call they were read
	turn      int                          // of the last answer, while the transcript is read
}

var _ loop.Recorded = (*facts)(nil)

func newFacts(t *recording.Thread) (*facts, error) {
	f := &facts{artifacts: map[string][]byte{}, messages: map[int][]transcript.Message{}}
	for name, content := range t.Artifacts {
		f.artifacts[name[:min(len(name), hashDigits)]] = content
	}
	for e, err := range t.Events() {
		if err == nil {
			err = f.add(e)
		}
		if err != nil {
			return nil, fmt.Errorf("recorded results of %s: %w", t.ThreadID, err)
		}
	}
	return f, nil
}

// hashDigits are those of a SHA-256.
const hashDigits = 64

func (f *facts) add(e thread.Event) (err error) {
	switch e.Type {
	case thread.EventToolCallResult:
		f.results, err = appended(f.results, e)
	case thread.EventContextInjected:
		f.injected, err = appended(f.injected, e)
	case thread.EventHookFired:
		f.hooks, err = appended(f.hooks, e)
	case thread.EventCognitionOut:
		var p transcript.CognitionOut
		if p, err = transcript.Decode[transcript.CognitionOut](e); err == nil {
			f.turn = p.Turn
		}
	case thread.EventMessage:
		var p transcript.Message
		if p, err = transcript.Decode[transcript.Message](e); err == nil {
			f.messages[f.turn+1] = append(f.messages[f.turn+1], p)
		}
	case thread.EventQuestionAnswered:
		var p transcript.QuestionAnswered
		if p, err = transcript.Decode[transcript.QuestionAnswered](e); err == nil {
			f.answers = append(f.answers, thread.Answer{Decision: p.Decision, Limits: p.Limits, Summary: p.Summary, By: p.By, At: e.Timestamp})
		}
	}
	return err
}

func appended[T any](list []T, e thread.Event) ([]T, error) {
	p, err := transcript.Decode[T](e)
	return append(list, p), err
}

// taken gives the first of a list that fits, and takes it out.
func taken[T any](list *[]T, fits func(T) bool) (found T, ok bool) {
	i := slices.IndexFunc(*list, fits)
	if i < 0 {
		return found, false
	}
	found = (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return found, true
}

// Call implements [loop.Recorded].
func (f *facts) Call(c llm.Block, refused *tool.Fault) loop.RecordedResult {
	was, known := taken(&f.results, func(r transcript.ToolCallResult) bool {
		return r.CallID == c.ToolCallID && r.Tool == c.ToolName
	})
	result := loop.RecordedResult{Text: was.Text, IsError: was.IsError, Images: f.shown(was.Images), Sum: was.Sum, SameAs: was.SameAs}
	switch {
	case refused != nil && known && was.IsError && recording.ResultOf(was.Text, true) == string(refused.Code):
		return result
	case refused != nil:
		return failure(refused)
	case !known:
		return loop.RecordedResult{Text: recording.NoResult, IsError: true}
	case was.IsError && wasRefused(was.Text):
		return failure(tool.Faultf(codeNotRecorded, "this call was refused when it was recorded, and would be made today: what it gives is not known"))
	}
	return result
}

// codeNotRecorded is that of a call whose result nobody knows.
const codeNotRecorded tool.Code = "not_recorded"

func failure(f *tool.Fault) loop.RecordedResult {
	text, err := json.Marshal(f.Body())
	if err != nil {
		text = []byte(f.Message)
	}
	return loop.RecordedResult{Text: string(text), IsError: true}
}

// wasRefused reports whether a call was refused for lack of a capability, before anything
// was run.
func wasRefused(text string) bool {
	var told struct {
		Missing string `json:"missing_capability"`
	}
	return json.Unmarshal([]byte(text), &told) == nil && told.Missing != ""
}

// shown are images with their bytes.
func (f *facts) shown(images []llm.Image) []llm.Image {
	var found []llm.Image
	for _, image := range images {
		if data, known := f.artifacts[image.Ref]; known {
			image.Data = data
			found = append(found, image)
		}
	}
	return found
}

// Action implements [loop.Recorded]. An action that a hook calls after a context
// event has no effect on the thread but whether it failed.
func (f *facts) Action(c hook.Call) (hook.Result, error) {
	gave, known := taken(&f.injected, func(p transcript.ContextInjected) bool {
		return p.HookID == c.Hook.ID && p.ItemID == c.Action.ItemID
	})
	if known {
		return hook.Result{Text: gave.Text}, nil
	}
	fired, known := taken(&f.hooks, func(p transcript.HookFired) bool {
		return p.HookID == c.Hook.ID && p.Event == string(c.Event) && p.Error != ""
	})
	if known {
		return hook.Result{}, errors.New(fired.Error)
	}
	return hook.Result{}, nil
}

// Injected implements [loop.Recorded].
func (f *facts) Injected(toolID, what string) (string, error) {
	gave, known := taken(&f.injected, func(p transcript.ContextInjected) bool { return p.ItemID == toolID && p.Of == what })
	if !known {
		return "", fmt.Errorf("what %q gives is not on record", what)
	}
	return gave.Text, nil
}

// Answer implements [loop.Recorded].
func (f *facts) Answer(q thread.Question) thread.Answer {
	answer, known := taken(&f.answers, func(a thread.Answer) bool { return slices.Contains(q.Options, a.Decision) })
	if !known {
		return thread.Answer{Decision: q.Default, By: "nobody: no answer is on record"}
	}
	return answer
}

// Heard implements [loop.Recorded].
func (f *facts) Heard(turn int) []transcript.Message {
	heard := f.messages[turn]
	delete(f.messages, turn)
	return heard
}

// Steered implements [loop.Recorded].
func (f *facts) Steered(turn int) bool {
	return slices.ContainsFunc(f.messages[turn], func(m transcript.Message) bool { return m.Kind == thread.Steer })
}

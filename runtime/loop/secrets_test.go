package loop

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/secret"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

const declaredSecret = `<input name="token" secret="true" />`

// withSecret is a thread that was started with a secret.
func withSecret() job {
	return job{declared: declaredSecret, inputs: map[string]any{"who": "{input:token}", "token": "{secret:token}"}}
}

// attached is a result with an attachment.
type attached struct {
	Said        string `json:"said"`
	attachments []tool.Attachment
}

func (a attached) Attachments() []tool.Attachment { return a.attachments }

// leaky are tools that tell what they were given in every way there is.
func leaky(got chan<- string) []tool.Tool {
	def := func(name string) tool.Definition { return tool.Definition{ID: "test/" + name, Description: name} }
	return []tool.Tool{
		tool.New(def("attach"), func(_ context.Context, env tool.Env, in word) (any, error) {
			got <- in.Word
			if env.Mask == nil {
				return nil, errors.New("there is no mask")
			}
			return attached{in.Word, []tool.Attachment{
				{Name: in.Word + ".txt", MediaType: "text/plain", Data: []byte("text " + in.Word)},
				{Name: "binary", MediaType: "application/octet-stream", Data: []byte("\x00\x01" + in.Word + "\xff")},
			}}, nil
		}),
		tool.New(def("refuse"), func(_ context.Context, _ tool.Env, in word) (any, error) {
			return nil, tool.Faultf(tool.CodeNotFound, "no %s", in.Word).With("word", in.Word).WithHint("not %s", in.Word)
		}),
		tool.New(def("break"), func(_ context.Context, _ tool.Env, in word) (any, error) { return nil, errors.New(in.Word) }),
		tool.New(def("crash"), func(_ context.Context, _ tool.Env, in word) (any, error) { panic(in.Word) }),
		tool.New(def("blob"), func(_ context.Context, _ tool.Env, in word) (any, error) { return []byte("\x00" + in.Word), nil }),
	}
}

// TestSecretInputs: tools get the values, and of all the ways in which they tell
// them none leads into a file, the log, the outcome or to the model.
func TestSecretInputs(t *testing.T) {
	t.Parallel()
	const value = `tok"en/never+shown`
	h, got := newHouse(t), make(chan string, 9)
	h.tools.more = leaky(got)
	call := func(name, word string) string { return "{name: test_" + name + ", input: {word: '" + word + "'}}" }
	h.script("turns:\n  - match: {first: 'for {input:token}'}\n    times: 1\n    tool_calls: [" + strings.Join([]string{
		call("attach", "{secret:token}"), call("refuse", "a {secret:token}"), call("break", "{secret:token}"), call("crash", "{secret:token}"),
		call("blob", "{secret:token}"), call("echo", "{secret:other} {secret:token}"), "{name: test_none, input: {word: '{secret:token}'}}",
	}, ", ") + "]\n  - {error: {status: 400, type: invalid_request_error, message: 'what is tok\"en/never+shown?'}}\n")
	vault := secret.New(map[string]string{"token": value})
	h.finisher.Mask = vault
	d := h.deps(h.register(withSecret()))
	d.Secrets = vault
	rec, err := Run(t.Context(), d)
	if err != nil || rec.Status != thread.Error || !strings.Contains(rec.Outcome.Error.Message, "what is {secret:token}?") {
		t.Fatalf("%+v, %v", rec.Outcome, err)
	}
	if word := <-got; word != value {
		t.Errorf("the tool got %q", word)
	}
	results := h.results(rec.ThreadID)
	echoed := func(r transcript.ToolCallResult) bool { return r.Text == `{"word":"{secret:other} {secret:token}"}` }
	if len(results) != 7 || !slices.ContainsFunc(results, echoed) {
		t.Errorf("results %+v", results)
	}
	texts := map[string]string{"the outcome": string(mustJSON(t, rec))}
	for _, r := range h.server.Requests() {
		texts["a request"] += string(r.Body)
	}
	if err := h.addFiles(texts); err != nil || len(texts) < 8 {
		t.Fatalf("%d texts, %v", len(texts), err)
	}
	for where, text := range texts {
		for _, form := range []string{value, `tok\"en/never+shown`, `tok\\\"en/never+shown`} {
			if strings.Contains(text, form) {
				t.Errorf("%s is in %s", form, where)
			}
		}
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestIDsAreShown: the successor is found, whatever the secrets are.
func TestIDsAreShown(t *testing.T) {
	t.Parallel()
	r := &run{Deps: Deps{Secrets: secret.New(map[string]string{"token": "test/task"})}}
	o := r.withoutSecrets(thread.Outcome{State: thread.Continued, Handoff: &thread.Handoff{NewThreadID: "test/task-1"}, Warnings: []string{"a test/task"}})
	if o.Handoff.NewThreadID != "test/task-1" || o.Warnings[0] != "a {secret:token}" {
		t.Errorf("%+v, %+v", o, o.Handoff)
	}
}

// TestSecretIsLost: a starter that takes the place of one that is gone does not
// have the secrets of the thread, and the thread must not run with their placeholders.
func TestSecretIsLost(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script("turns: [{text: done}]")
	rec := h.run(withSecret())
	if rec.Status != thread.Error || !strings.Contains(rec.Outcome.Error.Message, "the value of the secret input token was lost") {
		t.Errorf("outcome %+v", rec.Outcome)
	}
	if len(h.server.Requests()) > 0 {
		t.Error("the model was asked")
	}
}

// TestSecretIsNotMissed: one that is not required need not be there.
func TestSecretIsNotMissed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script("turns: [{text: done}]")
	rec := h.run(job{declared: declaredSecret})
	if rec.Status != thread.Completed {
		t.Errorf("outcome %+v", rec.Outcome)
	}
}

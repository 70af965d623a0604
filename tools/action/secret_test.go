package action

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// oneSecret is the secret token of a thread.
type oneSecret struct{}

const (
	secretPlaceholder = "{secret:token}"
	secretFile        = "note.txt"
)

func (oneSecret) RevealText(text string) string {
	return strings.ReplaceAll(text, secretPlaceholder, secretFile)
}

func (s oneSecret) Reveal(args json.RawMessage) json.RawMessage {
	return json.RawMessage(s.RevealText(string(args)))
}

func (oneSecret) Named(text string) []string {
	if strings.Contains(text, secretPlaceholder) {
		return []string{secretPlaceholder}
	}
	return nil
}

// Tools of this machine get the values of secrets, and nothing else does.
func TestSecrets(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := h.holder("rye.execute.tool.rye.file-system.read", "rye.search.tool.*", "rye.search.tool.**", "rye.execute.directive.test.hello")
	c.Secrets = oneSecret{}
	parameters := object(t, map[string]any{"path": secretPlaceholder})
	read := ExecuteRequest{ItemType: "tool", ItemID: "rye/file-system/read", Parameters: parameters}

	got, err := h.Execute(t.Context(), c, read)
	if err != nil || !strings.Contains(string(object(t, got)), "|one") {
		t.Errorf("the tool did not get the value: %v, %v", got, err)
	}
	read.DryRun = true
	got, err = h.Execute(t.Context(), c, read)
	if text := string(object(t, got)); err != nil || !strings.Contains(text, secretPlaceholder) || strings.Contains(text, secretFile) {
		t.Errorf("a plan has the value: %s, %v", text, err)
	}
	read.DryRun, read.Async = false, true
	got, err = h.Execute(t.Context(), c, read)
	wantFault(t, got, err, tool.CodeUnsupported, secretPlaceholder+" cannot be given to a run in the background")

	got, err = h.Search(t.Context(), c, SearchRequest{Query: secretPlaceholder, Scope: "tool"})
	if text := string(object(t, got)); err == nil && strings.Contains(text, secretFile) {
		t.Errorf("a query has the value: %s", text)
	}
	// Its use in the inputs of a child is up to the code that starts that child.
	_, err = h.Execute(t.Context(), c, ExecuteRequest{ItemID: "test/hello", Parameters: object(t, map[string]any{"who": secretPlaceholder})})
	if err != nil || h.threads.start.Inputs["who"] != secretPlaceholder {
		t.Errorf("inputs %v, %v", h.threads.start.Inputs, err)
	}
	// A thread that may not run the tool does not get that far.
	c.Allow = h.holder().Allow
	read.Async = false
	got, err = h.Execute(t.Context(), c, read)
	wantFault(t, got, err, tool.CodePermissionDenied, "file-system.read")
}

// A directive for the caller's own model does not repeat what that has given.
func TestInlineSecrets(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.put(h.project, "directives/test/deploy.md", "```xml\n<directive name=\"deploy\" version=\"1.0.0\"><metadata/>"+
		"<inputs><input name=\"token\" secret=\"true\" /></inputs></directive>\n```\n\nUse {input:token}.\n")
	r := ExecuteRequest{ItemID: "test/deploy", Parameters: object(t, map[string]any{"token": "never-repeated"})}
	got, err := h.Execute(t.Context(), h.client(), r)
	if err != nil {
		t.Fatal(err)
	}
	d := got.(*InlineDirective)
	if !strings.Contains(d.Body, "Use {secret:token}.") || !strings.Contains(d.YourDirections, "{secret:token} stands for the value of token") {
		t.Errorf("got %+v", d)
	}
	r.DryRun = true
	plan, err := h.Execute(t.Context(), h.client(), r)
	if err != nil {
		t.Fatal(err)
	}
	for _, answer := range []any{got, plan} {
		if text := string(object(t, answer)); strings.Contains(text, "never-repeated") {
			t.Errorf("the answer repeats the value: %s", text)
		}
	}
	if text := string(object(t, plan)); !strings.Contains(text, `"inputs":{"token":{"secret":true}}`) {
		t.Errorf("plan %s", text)
	}
	r.Parameters = object(t, map[string]any{"token": []string{"never-repeated"}})
	got, err = h.Execute(t.Context(), h.client(), r)
	details := wantFault(t, got, err, tool.CodeInvalidInputs, "token must be a string")
	if text := string(object(t, details)) + err.Error(); strings.Contains(text, "never-repeated") {
		t.Errorf("the refusal repeats the value: %s", text)
	}
}

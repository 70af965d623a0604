package prompt_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/mcp/prompt"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/system"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/builtin/file"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// house is a project, a user space and the shipped system space, with signatures
// taken strictly.
type house struct {
	*prompt.Library
	t       testing.TB
	project string
	user    string
}

func newHouse(t testing.TB) *house {
	t.Helper()
	h := &house{t: t, project: t.TempDir(), user: t.TempDir()}
	seed := sha256.Sum256([]byte(t.Name()))
	if _, err := sign.Generate(h.user, false, strings.NewReader(string(seed[:]))); err != nil {
		t.Fatal(err)
	}
	resolver := resolve.New(resolve.Roots{Project: h.project, User: h.user, System: system.FS()})
	key := func() (*sign.Key, error) { return sign.Load(h.user) }
	h.Library = &prompt.Library{
		Actions: action.New(action.Deps{
			Resolver: resolver, Key: key, Now: time.Now, Compose: compose,
			Trust: &trust.Gate{
				Roots: resolver.Roots(), Shipped: system.Has,
				Own: func() (*sign.PublicKey, error) {
					k, err := key()
					if err != nil {
						return nil, err
					}
					return k.Public(), nil
				},
				Settings: func() (trust.Settings, error) { return trust.Settings{Mode: trust.Strict}, nil },
			},
		}),
		Paths: func(ctx context.Context, prefix string, most int) ([]string, error) {
			return file.Complete(ctx, h.project, h.user, prefix, most)
		},
		Threads: func(_ context.Context, prefix string, _ int) ([]string, error) {
			return slices.DeleteFunc([]string{"plan-2", "plan-1"}, func(id string) bool { return !strings.HasPrefix(id, prefix) }), nil
		},
	}
	return h
}

// compose stands for the orchestrator.
func compose(_ context.Context, _ thread.ID, found *resolve.Found, values map[string]any) (*action.Composed, error) {
	doc, err := found.Directive()
	if err != nil {
		return nil, err
	}
	composed := &action.Composed{Body: inputs.Body(doc, values, nil)}
	if strings.Contains(doc.Body, "with tools") {
		composed.Capabilities = []string{"rye.execute.tool.rye.git.diff"}
	}
	return composed, nil
}

// write writes a file of a space.
func (h *house) write(space, name, content string) {
	h.t.Helper()
	path := filepath.Join(space, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		h.t.Fatal(err)
	}
}

// put writes a directive.
func (h *house) put(space, id, description, inputs, body string) {
	h.t.Helper()
	h.write(space, ".ai/directives/"+id+".md", fmt.Sprintf("# About %s\n\n```xml\n<directive name=%q version=\"1.0.0\">\n<metadata>\n"+
		"<description>%s</description>\n<category>c</category>\n<author>us</author>\n<model tier=\"fast\"/>\n<limits turns=\"3\"/>\n<permissions/>\n</metadata>\n%s\n"+
		"</directive>\n```\n\n%s\n", id, filepath.Base(id), description, inputs, body))
}

// sign signs all directives.
func (h *house) sign() {
	h.t.Helper()
	signed, err := h.Actions.Sign(h.t.Context(), h.caller(), action.SignRequest{ItemType: "directive", ItemID: "**"})
	if err != nil || !signed.Success {
		h.t.Fatalf("sign: %+v, %v", signed, err)
	}
}

func (h *house) caller() action.Caller { return action.Caller{Env: tool.Env{Project: h.project}} }

func (h *house) names() []string {
	h.t.Helper()
	prompts, err := h.List(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	names := []string{}
	for _, p := range prompts {
		names = append(names, p.Name)
	}
	return names
}

// get is the text of a prompt, or the error.
func (h *house) get(name string, args map[string]string) string {
	h.t.Helper()
	text, err := h.Get(h.t.Context(), h.caller(), name, args)
	if err != nil {
		if !errors.As(err, new(*prompt.Error)) {
			h.t.Errorf("%.50s: not an error for a person: %v", name, err)
		}
		return "error: " + err.Error()
	}
	return text.Text
}

package loop

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// The thread's process looks at the directive itself, whatever its spawner said
// of it: the one whose hash stands in thread.json, and whether it may be used.
func TestDirectiveIsVerifiedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		signed, edited bool
		code           string // empty: the thread completes
	}{
		"signed":                     {signed: true},
		"unsigned":                   {code: "integrity"},
		"changed after it was begun": {signed: true, edited: true, code: "invalid_item"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.mode = trust.Strict
			h.script("turns:\n  - {text: Done.}\n")
			id := h.register(job{meta: func(m *thread.Meta) {
				if c.signed {
					m.DirectiveHash = h.signDirective()
				}
			}})
			if c.edited {
				h.write(".ai/directives/test/task.md", "nothing")
			}
			rec := h.end(t.Context(), id)
			switch {
			case c.code == "" && rec.Status != thread.Completed:
				t.Errorf("%s %+v", rec.Status, rec.Outcome.Error)
			case c.code != "" && (rec.Status != thread.Error || rec.Outcome.Error.Code != c.code || rec.Cost.Turns != 0):
				t.Errorf("%s %+v", rec.Status, rec.Outcome)
			}
		})
	}
}

// signFound replaces the file of an item by its signed form.
func (h *house) signFound(found *resolve.Found) {
	h.t.Helper()
	text, err := sign.Attach(found.Content, found.Ext, trust.NameOf(found.Entry), h.key, time.Now())
	if err = errors.Join(err, os.WriteFile(found.Path, text, 0o600)); err != nil {
		h.t.Fatal(err)
	}
}

// signDirective signs the directive of the registered thread and returns its
// hash.
func (h *house) signDirective() string {
	h.t.Helper()
	found, err := h.resolver().Find(item.Directive, "test/task")
	if err != nil {
		h.t.Fatal(err)
	}
	h.signFound(found)
	if found, err = h.resolver().Find(item.Directive, "test/task"); err != nil {
		h.t.Fatal(err)
	}
	if !strings.Contains(string(found.Content), "rye:signed") {
		h.t.Fatal("not signed")
	}
	return found.Hash
}

package trust_test

import (
	"errors"
	"os"
	"testing"
	"testing/fstest"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// gate is one whose settings and key can be changed.
func (h *house) gate(settings *trust.Settings) *trust.Gate {
	return &trust.Gate{
		Roots: resolve.Roots{Project: h.project, User: h.user, System: h.system},
		Shipped: func(path string, content []byte) bool {
			return path == "directives/a.md" && string(content) == "shipped"
		},
		Own:      func() (*sign.PublicKey, error) { return h.own.Public(), nil },
		Settings: func() (trust.Settings, error) { return *settings, nil },
	}
}

func directiveOf(space item.Space, content []byte) trust.Subject {
	path := "/p/.ai/directives/a.md"
	if space == item.System {
		path = "system:directives/a.md"
	}
	return trust.Subject{Kind: item.Directive, ID: review.ID, Space: space, Path: path, Ext: ".md", Content: content}
}

// A gate sees what changes while it is there.
func TestGateFollowsSettingsAndKeys(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	friend := newKey(t, 2)
	settings := trust.Settings{Mode: trust.Strict}
	gate := h.gate(&settings)
	file := directiveOf(item.Project, attach([]byte(directiveText), ".md", friend, noon))
	if _, err := gate.Check(file); !errors.Is(err, trust.ErrUntrustedKey) {
		t.Errorf("before: %v", err)
	}
	path := h.vouch(item.User, friend, h.own)
	if decision, err := gate.Check(file); err != nil || decision.Verdict.Status != trust.Genuine || decision.Warning != "" {
		t.Errorf("trusted: %+v, %v", decision, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := gate.Check(file); !errors.Is(err, trust.ErrUntrustedKey) {
		t.Errorf("not trusted any more: %v", err)
	}
	settings.Mode = trust.Warn
	if decision, err := gate.Check(file); err != nil || decision.Warning == "" {
		t.Errorf("warn: %+v, %v", decision, err)
	}
	settings.Mode = trust.Off
	if decision, err := gate.Check(file); err != nil || decision != (trust.Decision{}) {
		t.Errorf("off: %+v, %v", decision, err)
	}
	if v, err := gate.Verify(file); err != nil || v.Status != trust.UntrustedKey {
		t.Errorf("verified: %+v, %v", v, err)
	}
}

// An item that cannot be read is refused, unless it is shipped.
func TestGateFailsClosed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	broken := errors.New("broken")
	good := directiveOf(item.Project, attach([]byte(directiveText), ".md", h.own, noon))
	shipped, forged := directiveOf(item.System, []byte("shipped")), directiveOf(item.System, []byte("forged"))
	for name, spoil := range map[string]func(*trust.Gate){
		"settings": func(g *trust.Gate) {
			g.Settings = func() (trust.Settings, error) { return trust.Settings{Mode: trust.Off}, broken }
		},
		"key": func(g *trust.Gate) { g.Own = func() (*sign.PublicKey, error) { return nil, broken } },
	} {
		gate := h.gate(&trust.Settings{})
		spoil(gate)
		if decision, err := gate.Check(good); !errors.Is(err, broken) {
			t.Errorf("%s: %+v, %v", name, decision, err)
		}
		if decision, err := gate.Check(shipped); err != nil || decision.Verdict.Status != trust.Shipped {
			t.Errorf("%s, shipped: %+v, %v", name, decision, err)
		}
		if decision, err := gate.Check(forged); err == nil {
			t.Errorf("%s, forged: %+v", name, decision)
		}
	}
	gate := h.gate(&trust.Settings{})
	if _, err := gate.Check(forged); !errors.Is(err, trust.ErrNotShipped) {
		t.Errorf("forged: %v", err)
	}
	gate.Own = func() (*sign.PublicKey, error) { return nil, broken }
	if v, err := gate.Verify(good); !errors.Is(err, broken) {
		t.Errorf("verified without keys: %+v, %v", v, err)
	}
	if v, err := gate.Verify(forged); err != nil || v.Status != trust.NotShipped {
		t.Errorf("verified: %+v, %v", v, err)
	}
}

// BenchmarkGate is what a check costs with a key on disk and ten trusted ones,
// without the settings.
func BenchmarkGate(b *testing.B) {
	h := newHouse(b)
	h.system = fstest.MapFS{}
	user := b.TempDir()
	own, err := sign.Generate(user, false, seed(1))
	if err != nil {
		b.Fatal(err)
	}
	h.user, h.own = user, own
	for n := range 10 {
		h.vouch(item.User, newKey(b, byte(n+10)), h.own)
	}
	gate := h.gate(&trust.Settings{})
	gate.Own = func() (*sign.PublicKey, error) {
		key, err := sign.Load(user)
		if err != nil {
			return nil, err
		}
		return key.Public(), nil
	}
	for name, by := range map[string]*sign.Key{"own": h.own, "other": newKey(b, 10)} {
		file := directiveOf(item.Project, attach([]byte(directiveText), ".md", by, noon))
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := gate.Check(file); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

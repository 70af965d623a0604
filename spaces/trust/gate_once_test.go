package trust

import (
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// A gate for one call reads settings and keys once, whatever it is asked; the gate
// it was made of reads them every time.
func TestGateOnce(t *testing.T) {
	t.Parallel()
	keys, modes := 0, 0
	base := &Gate{Own: func() (*sign.PublicKey, error) { keys++; return nil, nil }}
	settings := func() (Settings, error) { modes++; return Settings{Mode: Warn}, nil }
	once, live := base.Once(settings), base.With(settings)
	if keys+modes > 0 {
		t.Errorf("%d and %d were read before anything was asked", keys, modes)
	}
	for range 3 {
		for _, g := range []*Gate{once, live} {
			if _, err := g.Check(Subject{Kind: "tool", ID: "x", Path: "x.py", Ext: ".py", Content: []byte("x")}); err != nil {
				t.Error(err)
			}
			if _, err := g.Keyring(); err != nil {
				t.Error(err)
			}
		}
	}
	if modes != 1+3 {
		t.Errorf("settings were read %d times", modes)
	}
	if keys != 1+3*3 { // two of them by a check of what nobody signed
		t.Errorf("the key was read %d times", keys)
	}
	if _, err := base.Check(Subject{}); err == nil {
		t.Error("a gate without settings let something in")
	}
	fixed := &Gate{Settings: func() (Settings, error) { return Settings{Mode: Off}, nil }}
	if s, err := fixed.Once(settings).Integrity(); err != nil || s.Mode != Off {
		t.Errorf("its own settings gave way: %v, %v", s, err)
	}
}

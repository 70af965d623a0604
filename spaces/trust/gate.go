package trust

import (
	"fmt"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// Gate is the [Checker] of a project whose settings and keys may change: it
// reads them for every file that is checked, so that a server notices a key that
// the user trusts, or does no longer, without being started again. For what the
// user signed that costs less than a millisecond, for what others did a fifth
// of one more for each trusted key, for what is shipped one hash. It is safe for
// concurrent use.
type Gate struct {
	Roots   resolve.Roots
	Shipped func(path string, content []byte) bool // see [Sources]
	Own     func() (*sign.PublicKey, error)        // nil when the user has no signing key
	// State is the key of what the user's threads leave; nil when there is none. It
	// counts for the knowledge about threads, and for nothing else.
	State    func() (*sign.PublicKey, error)
	Settings func() (Settings, error)
}

// Check decides whether a file may be used, as [Checker.Check] does. Settings or
// keys that cannot be read are a reason to refuse.
func (g *Gate) Check(s Subject) (Ruling, error) {
	if s.Space == item.System {
		if v := g.ring(nil, resolve.Roots{}).Verify(s); v.Status.Good() {
			return Ruling{Verdict: v}, nil
		}
	}
	settings, err := g.Settings()
	if err != nil {
		return Ruling{}, err
	}
	if settings.Mode == Off {
		return Ruling{}, nil
	}
	own, err := g.Own()
	if err != nil {
		return Ruling{}, fmt.Errorf("%s cannot be checked: %w", s, err)
	}
	if v := g.ring(own, resolve.Roots{}).Verify(s); v.Status.Good() {
		return Ruling{Verdict: v}, nil
	}
	if good, v, err := g.aboutThread(s); err != nil || good {
		return Ruling{Verdict: v}, err
	}
	checker := Checker{Settings: settings, Ring: g.ring(own, g.Roots)}
	return checker.Check(s)
}

// Verify says what the signature of a file is worth, whatever the settings are.
func (g *Gate) Verify(s Subject) (Verdict, error) {
	if s.Space == item.System {
		return g.ring(nil, resolve.Roots{}).Verify(s), nil
	}
	if good, v, err := g.aboutThread(s); err != nil || good {
		return v, err
	}
	ring, err := g.Ring()
	if err != nil {
		return Verdict{}, err
	}
	return ring.Verify(s), nil
}

// aboutThread verifies knowledge about a thread with the state key.
func (g *Gate) aboutThread(s Subject) (good bool, v Verdict, err error) {
	if g.State == nil || !item.IsThreadRecord(s.Kind, s.ID) {
		return false, v, nil
	}
	key, err := g.State()
	if err != nil {
		return false, v, fmt.Errorf("%s cannot be checked: %w", s, err)
	}
	if key == nil {
		return false, v, nil
	}
	v = g.ring(key, resolve.Roots{}).Verify(s)
	return v.Status.Good(), v, nil
}

// Ring reads all keys.
func (g *Gate) Ring() (*Ring, error) {
	own, err := g.Own()
	if err != nil {
		return nil, err
	}
	return g.ring(own, g.Roots), nil
}

// ring is the own key and those of the documents in roots.
func (g *Gate) ring(own *sign.PublicKey, roots resolve.Roots) *Ring {
	return Load(Sources{Roots: roots, Own: own, Shipped: g.Shipped})
}

package trust

import (
	"errors"
	"fmt"
	"sync"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// Gate is the [Checker] of a project whose settings and keys may change: it
// reads them for every file that is checked, so that a server notices a key that
// the user trusts, or does no longer, without being started again. [Gate.Once] is
// a gate for one call, which reads them once. For what the user signed a check
// costs less than a millisecond, for what others did a fifth of one more for each
// trusted key, for what is shipped one hash. It is safe for concurrent use.
type Gate struct {
	Roots   resolve.Roots
	Shipped func(path string, content []byte) bool // see [Sources]
	Own     func() (*sign.PublicKey, error)        // nil when the user has no signing key
	// State are the keys of what the user's threads leave; none when there is none. They
	// count for the knowledge about threads, and for nothing else.
	State func() ([]*sign.PublicKey, error)
	// Settings is nil in a gate that is made for a call, or a thread, by With or Once.
	Settings func() (Settings, error)
	// Development makes "warn" of the mode "strict"; see [Settings.ForDevelopment].
	Development bool
	// Pinned refuses what is not as the thread that this process runs has to have it,
	// whoever has signed it; nil: everything may have changed.
	Pinned func(Subject) error

	// all are the keys of Own and Roots, where they are read once; else nil.
	all func() (*Keyring, error)
}

// With is the gate with these settings, unless it has some of its own. Keys are read
// for every file.
func (g *Gate) With(settings func() (Settings, error)) *Gate {
	with := *g
	if with.Settings == nil {
		with.Settings = settings
	}
	return &with
}

// PinnedBy is the gate that asks somebody else too, before it looks at signatures.
func (g *Gate) PinnedBy(pinned func(Subject) error) *Gate {
	with := *g
	with.Pinned = pinned
	return &with
}

// Once is the gate for one call: settings and keys are read at most once, when a
// file first needs them.
func (g *Gate) Once(settings func() (Settings, error)) *Gate {
	once := g.With(settings)
	once.Settings = sync.OnceValues(once.Settings)
	if g.Own != nil {
		once.Own = sync.OnceValues(g.Own)
	}
	if g.State != nil {
		once.State = sync.OnceValues(g.State)
	}
	once.all = sync.OnceValues(once.readKeyring)
	return once
}

// Check decides whether a file may be used, as [Checker.Check] does. Settings or
// keys that cannot be read are a reason to refuse.
func (g *Gate) Check(s Subject) (Decision, error) {
	if s.Recorded {
		return Decision{}, nil // it is read again where nothing can be done
	}
	if g.Pinned != nil {
		if err := g.Pinned(s); err != nil {
			return Decision{}, err
		}
	}
	if s.Space == item.System {
		if v := g.keyring(nil, resolve.Roots{}).Verify(s); v.Status.Good() {
			return Decision{Verdict: v}, nil
		}
	}
	settings, err := g.Integrity()
	if err != nil {
		return Decision{}, err
	}
	if settings.Mode == Off {
		return Decision{}, nil
	}
	own, err := g.Own()
	if err != nil {
		return Decision{}, fmt.Errorf("%s cannot be checked: %w", s, err)
	}
	if v := g.keyring(own, resolve.Roots{}).Verify(s); v.Status.Good() {
		return Decision{Verdict: v}, nil
	}
	if good, v, err := g.aboutThread(s); err != nil || good {
		return Decision{Verdict: v}, err
	}
	keyring, err := g.Keyring()
	if err != nil {
		return Decision{}, fmt.Errorf("%s cannot be checked: %w", s, err)
	}
	checker := Checker{Settings: settings, Keyring: keyring}
	return checker.Check(s)
}

// Integrity is how strictly signatures are taken.
func (g *Gate) Integrity() (Settings, error) {
	if g.Settings == nil {
		return Settings{}, errNoSettings
	}
	settings, err := g.Settings()
	if g.Development {
		settings = settings.ForDevelopment()
	}
	return settings, err
}

// errNoSettings is the refusal of a gate that nobody has given settings.
var errNoSettings = errors.New("bug; nobody has said how strictly signatures are taken")

// Verify says what the signature of a file is worth, whatever the settings are.
func (g *Gate) Verify(s Subject) (Verdict, error) {
	if s.Space == item.System {
		return g.keyring(nil, resolve.Roots{}).Verify(s), nil
	}
	if good, v, err := g.aboutThread(s); err != nil || good {
		return v, err
	}
	keyring, err := g.Keyring()
	if err != nil {
		return Verdict{}, err
	}
	return keyring.Verify(s), nil
}

// aboutThread verifies knowledge about a thread with the state keys.
func (g *Gate) aboutThread(s Subject) (good bool, v Verdict, err error) {
	if g.State == nil || !item.IsThreadRecord(s.Kind, s.ID) {
		return false, v, nil
	}
	keys, err := g.State()
	if err != nil {
		return false, v, fmt.Errorf("%s cannot be checked: %w", s, err)
	}
	for _, key := range keys {
		if v = g.keyring(key, resolve.Roots{}).Verify(s); v.Status.Good() {
			return true, v, nil
		}
	}
	return false, v, nil
}

// Keyring reads all keys.
func (g *Gate) Keyring() (*Keyring, error) {
	if g.all != nil {
		return g.all()
	}
	return g.readKeyring()
}

func (g *Gate) readKeyring() (*Keyring, error) {
	own, err := g.Own()
	if err != nil {
		return nil, err
	}
	return g.keyring(own, g.Roots), nil
}

// keyring is the own key and those of the documents in roots.
func (g *Gate) keyring(own *sign.PublicKey, roots resolve.Roots) *Keyring {
	return Load(Sources{Roots: roots, Own: own, Shipped: g.Shipped})
}

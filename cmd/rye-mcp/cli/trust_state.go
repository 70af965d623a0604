package cli

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// adoptState is trust --adopt-state: it shows what would be believed of a stranger's
// state, and records its key for this place when the person says so.
func (t trusting) adoptState() error {
	finder := newFinder(t.sys, t.roots.User)
	keyring, err := newGate(t.sys, t.roots).Keyring()
	if err != nil {
		return err
	}
	found, err := finder.Survey(t.roots.Project, knownKeys(keyring))
	if err != nil {
		return adoptFault(err)
	}
	if live, err := runsHere(found.Dir); err != nil {
		return err
	} else if live {
		return tool.Faultf(tool.CodeUnsupported, "threads in %s run now", found.Dir).
			WithHint("wait until they have ended, then try again")
	}
	if err := showAdoption(t.screen(), keyring, found); err != nil {
		return err
	}
	yes, err := t.agreed("\nBelieve them?", "--yes believes them")
	if err != nil {
		return err
	}
	if !yes {
		return t.tellAdoption(keyring, found, declined, "Nothing was adopted.")
	}
	if err := finder.Adopt(t.roots.Project, found); err != nil {
		return adoptFault(err)
	}
	return t.tellAdoption(keyring, found, adopted, "Key %s counts for what its threads left here; look at them: rye-mcp threads list", found.Key.Fingerprint())
}

// knownKeys are the keys of a keyring that count, which may have signed state before
// there were places.
func knownKeys(keyring *trust.Keyring) []*sign.PublicKey {
	var keys []*sign.PublicKey
	for _, e := range keyring.List() {
		if e.Key != nil && e.State != trust.Untrusted {
			keys = append(keys, e.Key)
		}
	}
	return keys
}

// showAdoption says what adopting means, on one screen.
func showAdoption(d display, keyring *trust.Keyring, a place.Adoption) error {
	whose := cmp.Or(ownerOf(keyring, a.Key), "nobody you know")
	_, err := fmt.Fprintf(d.out, `%s
was left by %s, and signed by key %s of %s.

Believed from then on: rights, limits, results and transcripts of these threads,
which can be shown and resumed. Nothing of them is started, and nothing is signed
again; the databases are set aside, and made again from the signed folders.
`, plain.Line(a.Dir), counted(len(a.Threads), "thread"), a.Key.Fingerprint(), plain.Line(whose))
	if err == nil && a.Others > 0 {
		_, err = fmt.Fprintf(d.out, "Not believed: %s that this key has not signed for this place.\n", counted(a.Others, "thread"))
	}
	return err
}

// ownerOf is whose key it is, of those that count; empty for one that nobody knows.
func ownerOf(keyring *trust.Keyring, key *sign.PublicKey) string {
	owner := ""
	for _, e := range keyring.List() {
		if e.Key != nil && e.Key.Equal(key) && e.State != trust.Untrusted {
			owner = e.Owner
		}
	}
	return owner
}

func adoptFault(err error) error {
	var noUser *place.NoUserSpaceError
	switch {
	case errors.Is(err, place.ErrNothingToAdopt):
		return tool.Faultf(tool.CodeNotFound, "%w", err).WithHint("rye-mcp doctor says whose the state is")
	case errors.Is(err, place.ErrOwnThreads):
		return tool.Faultf(tool.CodeUnsupported, "%w", err)
	case errors.As(err, &noUser):
		return tool.Faultf(tool.CodeUnsupported, "%w", err).WithHint("%s", noUser.Try())
	}
	return err
}

package cli

import (
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// decision is what came of a call of trust.
type decision string

const (
	showed       decision = "showed"        // nothing was asked
	nothingThere decision = "nothing_there" // to accept, or to forget
	declined     decision = "declined"
	accepted     decision = "accepted"
	revoked      decision = "revoked"
	followed     decision = "followed"
	adopted      decision = "adopted"
)

// trustJSON is what trust writes with --json: how the project stands after the decision, and
// what it brought before that.
type trustJSON struct {
	Decision   decision       `json:"decision"`
	Project    string         `json:"project"`
	Place      string         `json:"place"` // that the decision is about: the main worktree of a repository
	Standing   trust.Standing `json:"standing"`
	AcceptedAt string         `json:"accepted_at,omitempty"`
	Follow     []string       `json:"follow"` // fingerprints of keys
	Items      []signedJSON   `json:"items"`
	Settings   []settingJSON  `json:"settings"`   // what they change, or would
	Programs   []string       `json:"programs"`   // of the folder, unsigned, that count when it is accepted
	NotCopied  []notCopied    `json:"not_copied"` // settings files that cannot be accepted
}

// signedJSON counts the items with one kind of signature.
type signedJSON struct {
	Count       int          `json:"count"`
	Status      trust.Status `json:"status"`
	Fingerprint string       `json:"fingerprint,omitempty"`
	Owner       string       `json:"owner,omitempty"` // of a key that is trusted
	Runs        bool         `json:"runs"`
}

// settingJSON is one change of the settings. Values that look like a secret are masked.
type settingJSON struct {
	Path     string `json:"path"`
	Line     int    `json:"line,omitempty"`
	Key      string `json:"key,omitempty"` // dots between its parts; without one the whole file is meant
	Holds    any    `json:"holds"`
	Says     any    `json:"says"`
	UserOnly bool   `json:"user_only,omitempty"` // it never counts: read from the user space only
	Error    string `json:"error,omitempty"`     // why the file cannot be read
}

type notCopied struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// tell says what came of the call, as JSON or as a line for people.
func (t trusting) tell(o *offer, d decision, format string, args ...any) error {
	if !t.asJSON {
		return tellTrust(t.sys, format, args...)
	}
	items, err := o.itemsJSON()
	if err != nil {
		return err
	}
	now := trust.ProjectOf(t.roots)
	told := trustJSON{
		Decision: d, Project: t.roots.Project, Place: now.Place, Standing: now.Standing, Follow: []string{},
		Items: items, Settings: o.settingsJSON(), Programs: append([]string{}, o.programs...), NotCopied: []notCopied{},
	}
	if now.Standing == trust.Accepted {
		told.AcceptedAt = now.Record.At.UTC().Format(time.RFC3339)
		told.Follow = append(told.Follow, now.Record.Follow...)
	}
	for _, left := range o.snapshot.Left {
		told.NotCopied = append(told.NotCopied, notCopied{left.Path, left.Reason})
	}
	return writeJSON(t.sys.Stdout, told)
}

func (o *offer) itemsJSON() ([]signedJSON, error) {
	signers, _, err := o.signers()
	items := []signedJSON{}
	for _, s := range signers {
		items = append(items, signedJSON{
			Count: s.count, Status: s.Status, Fingerprint: s.Fingerprint, Owner: s.Owner, Runs: s.Status.Good(),
		})
	}
	return items, err
}

func (o *offer) settingsJSON() []settingJSON {
	settings := []settingJSON{}
	for _, n := range o.leftOut {
		settings = append(settings, settingJSON{
			Path: n.Path, Line: n.Line, Key: strings.Join(n.Key, "."), Holds: mask(n.Key, n.Holds), Says: mask(n.Key, n.Says),
			UserOnly: n.UserOnly, Error: n.Fault,
		})
	}
	return settings
}

// adoptionJSON is what trust --adopt-state writes with --json.
type adoptionJSON struct {
	Decision    decision `json:"decision"`
	Dir         string   `json:"dir"`
	Fingerprint string   `json:"fingerprint"`
	Owner       string   `json:"owner,omitempty"` // of a key that is known
	Threads     []string `json:"threads"`         // that the key has signed
	Others      int      `json:"others"`          // threads that stay unbelieved
}

func (t trusting) tellAdoption(keyring *trust.Keyring, a place.Adoption, d decision, format string, args ...any) error {
	if !t.asJSON {
		return tellTrust(t.sys, format, args...)
	}
	return writeJSON(t.sys.Stdout, adoptionJSON{
		Decision: d, Dir: a.Dir, Fingerprint: a.Key.Fingerprint(), Owner: ownerOf(keyring, a.Key),
		Threads: append([]string{}, a.Threads...), Others: a.Others,
	})
}

package config

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"sync"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// project is what a project brings to the settings: the files that stand there,
// which are anybody's, and the copy of them that its user has accepted.
type project struct {
	present  place // nil when there is no project layer
	accepted place // nil when the user has accepted nothing
	follow   []string
	keyring  func() *trust.Keyring // the keys that verify what a followed one signed
	roots    resolve.Roots
}

// asAccepted is said behind the path of a file whose accepted copy differs from it.
const asAccepted = " (as accepted)"

// projectOf reads what there is of a project at the moment.
func projectOf(roots resolve.Roots) project {
	known := trust.ProjectOf(roots)
	p := project{roots: roots, keyring: sync.OnceValue(func() *trust.Keyring { return keyringOf(roots) })}
	if roots.Project == "" || known.Standing == trust.Home {
		return p
	}
	p.present = folder{dir: roots.Project, of: item.Project}
	if known.Standing == trust.Accepted {
		p.accept(known.Record.Snapshot())
		p.follow = known.Record.Follow
	}
	return p
}

func (p *project) accept(s trust.Snapshot) {
	p.accepted = kept{dir: p.roots.Project, files: s.Files, note: asAccepted}
}

// version is a file as it is in one of a project's two places.
type version struct {
	data  []byte
	name  string
	file  string // below .ai/config
	found bool
	err   error // but for its absence
}

func readVersion(from place, rel string) version {
	if from == nil {
		return version{}
	}
	data, name, err := from.read(rel)
	v := version{data: data, name: name, file: rel, found: err == nil}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		v.err = err
	}
	return v
}

// reason says why a file counts that a project brings as a whole or not at all.
type reason int

const (
	notAtAll    reason = iota
	absent             // there is none, and none was accepted
	asIs               // the version that is there was accepted
	byFollowing        // a key that the user follows signed what is there
	asCopied           // the version that is there was not accepted; another was
)

// counts says in which version a file counts, and returns that.
func (p project) counts(rel string) (reason, version) {
	now, accepted := readVersion(p.present, rel), readVersion(p.accepted, rel)
	switch {
	case !now.found && now.err == nil && !accepted.found:
		return absent, version{}
	case now.found && accepted.found && alike(rel, now.data, accepted.data):
		return asIs, now
	case now.found && p.followed(now):
		return byFollowing, now
	case accepted.found:
		return asCopied, accepted
	}
	return notAtAll, now
}

// follows reports whether a file counts because a key that the user follows signed
// it.
func (p project) follows(rel string) bool {
	why, _ := p.counts(rel)
	return why == byFollowing
}

// whole are the places that a file counts from which a project brings as a whole
// or not at all, at most one, and what is to be said about a version that does not
// count. The place holds what was compared: the file can change in the meantime.
func (p project) whole(rel string) ([]place, *Notice) {
	if p.present == nil {
		return nil, nil
	}
	why, v := p.counts(rel)
	path := filepath.Join(p.roots.Project, ".ai", "config", filepath.FromSlash(rel))
	counting := kept{dir: p.roots.Project, files: map[string][]byte{rel: v.data}}
	switch why {
	case asIs, byFollowing:
		return []place{counting}, nil
	case asCopied:
		counting.note = asAccepted
		return []place{counting}, &Notice{Path: path, File: rel, Since: true}
	case notAtAll:
		return nil, &Notice{Path: path, File: rel}
	case absent:
	}
	return nil, nil
}

// alike reports whether two versions of a file say the same: the signer makes no
// difference to that.
func alike(rel string, a, b []byte) bool {
	_, restA := sign.Split(a, path.Ext(rel))
	_, restB := sign.Split(b, path.Ext(rel))
	return bytes.Equal(restA, restB)
}

// followed reports whether a key that the user follows signed a file.
func (p project) followed(v version) bool {
	if len(p.follow) == 0 {
		return false
	}
	subject := trust.Subject{ID: v.file, Space: item.Project, Path: v.name, Ext: path.Ext(v.file), Content: v.data}
	line, _ := sign.Split(v.data, subject.Ext)
	if line == nil || !slices.Contains(p.follow, line.Fingerprint) {
		return false
	}
	return p.keyring().Verify(subject).Status.Good()
}

func keyringOf(roots resolve.Roots) *trust.Keyring {
	var own *sign.PublicKey
	if key, err := sign.Load(roots.User); err == nil {
		own = key.Public()
	}
	return trust.Load(trust.Sources{Roots: roots, Own: own})
}

package config

import (
	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// Loader reads the settings of one project: [Loader.Read] takes a snapshot of them.
// It reads every file each time, and parses one of the user's again when it has
// changed. It is safe for concurrent use.
type Loader struct {
	// Seen is told what is read; it may be nil.
	Seen *Seen

	own     []place // of system and user space
	project func() project
	shipped onceCache[parsed]   // files of the system space
	users   latestCache[parsed] // files of the user space
	values  latestCache[any]    // of kinds of which no project has files; by kind
	decided latestCache[answer[[]byte]]
	// Compiling a schema costs more than all the rest of a load. Where nothing but
	// shipped files is read none is compiled: all of them are 0.9 of the 7.4 MB that a
	// thread's process allocated until it first called its model (profile with
	// memprofilerate=1).
	schemas compiled[*jsonschema.Schema]
	rules   compiled[*rule] // what the schemas say about projects
}

// Seen observes a loader, for tests that count.
type Seen struct {
	File   func(path string) // a file was opened, or found missing
	Merged func(kind string) // the files of a kind were merged
}

func (s *Seen) file(path string) {
	if s != nil {
		s.File(path)
	}
}

func (s *Seen) merged(kind string) {
	if s != nil {
		s.Merged(kind)
	}
}

// New returns a loader of the settings in roots. The system space must hold the
// shipped settings, which are not checked against their schemas: a test has done
// that.
func New(roots resolve.Roots) *Loader {
	l := &Loader{
		own:     []place{embedded{roots.System}},
		schemas: compiled[*jsonschema.Schema]{compile: compileSchema}, rules: compiled[*rule]{compile: rulesOf},
	}
	if roots.User != "" {
		l.own = append(l.own, folder{dir: roots.User, of: item.User})
	}
	l.project = func() project { return projectOf(roots) }
	return l
}

// AsWritten is a loader for which all files of the project count, whoever has
// accepted them. It is for telling what is wrong with them, and for nothing that
// calls, runs or allows.
func AsWritten(roots resolve.Roots) *Loader {
	l := New(roots)
	l.project = func() project {
		p := projectOf(roots)
		p.accepted = p.present
		return p
	}
	return l
}

// Preview is a loader for which the project has the files of a snapshot.
func Preview(roots resolve.Roots, s trust.Snapshot) *Loader {
	l := New(roots)
	l.project = func() project {
		p := projectOf(roots)
		if p.present != nil {
			p.present = kept{dir: roots.Project, files: s.Files}
		}
		return p
	}
	return l
}

// PreviewAccepted is a loader for which the project has the files of a snapshot,
// and its user has accepted them.
func PreviewAccepted(roots resolve.Roots, s trust.Snapshot) *Loader {
	l := Preview(roots, s)
	preview := l.project
	l.project = func() project {
		p := preview()
		if p.present != nil {
			p.accept(s)
		}
		return p
	}
	return l
}

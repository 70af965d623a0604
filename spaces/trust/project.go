package trust

import (
	"os"
	"path/filepath"

	"github.com/rye-mcp/rye-mcp/spaces/pathname"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// Standing says how far the settings of a project may count.
type Standing string

// The standings of a project.
const (
	// Stranger: what its files say may tighten what holds without it, and no more.
	Stranger Standing = "stranger"
	// Accepted: the copy of its settings that its user has accepted holds.
	Accepted Standing = "trusted"
	// Home: the folder is the user space, whose settings are the user's own.
	Home Standing = "home"
	// Around: the user space lies in the folder, so that whoever can write the one
	// can write the other. Nothing of such a project is ever trusted.
	Around Standing = "around"
	// Nobody: there is no project, or no user space that could hold a record.
	Nobody Standing = "nobody"
)

// Project is what the user's records say about the settings of a project.
type Project struct {
	Standing Standing
	// Place is the path that the record is about: the project, or the same folder in
	// the main worktree of its repository.
	Place  string
	Record *Record // nil without one that can be used
	// Fault says why there is a record that cannot be used; nil when there is none.
	Fault error
}

// Programs reports whether programs and variables of the folder count, which nobody signs.
func (p Project) Programs() bool {
	return p.Standing == Home || p.Standing == Accepted && p.Record.Programs
}

// ProgramsIn names what a project brings that runs, or is loaded, unsigned: slash paths below it. Runtimes that a
// person signs can look elsewhere, too.
func ProgramsIn(project string) []string {
	var found []string
	for _, name := range []string{".env", ".venv", "node_modules", ".ai/node_modules", ".ai/tools/node_modules"} {
		if _, err := os.Lstat(filepath.Join(project, filepath.FromSlash(name))); err == nil {
			found = append(found, name)
		}
	}
	return found
}

// ProjectOf reads what the user's records say about a project.
func ProjectOf(roots resolve.Roots) Project {
	if roots.Project == "" || roots.User == "" {
		return Project{Standing: Nobody}
	}
	project, user := pathname.Real(roots.Project), pathname.Real(roots.User)
	switch {
	case project == user || sameSpace(user, project):
		return Project{Standing: Home, Place: project}
	case pathname.Holds(project, user):
		return Project{Standing: Around, Place: project}
	}
	p := Project{Standing: Stranger, Place: mainPlace(project)}
	record, err := loadRecord(roots.User, p.Place)
	switch {
	case err != nil:
		p.Fault = err
	case record != nil && record.Accepted:
		p.Standing, p.Record = Accepted, record
	default:
		p.Record = record
	}
	return p
}

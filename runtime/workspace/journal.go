package workspace

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
)

// The phases of a journal. A file is in its place only from placing on.
const (
	phaseDrafting = "drafting" // nothing has been changed
	phasePlacing  = "placing"  // every new file is there, beside its place
	phasePlaced   = "placed"   // every file is in its place: from here on nothing is taken back
	phaseBack     = "taking_back"
)

const journalType = "applying"

// journal says what applying a workspace changes, so that the next process can go on with
// it or take it back.
type journal struct {
	Type      string    `json:"type"`
	Place     string    `json:"place"`
	Target    string    `json:"target"` // folder
	Workspace string    `json:"workspace"`
	Base      string    `json:"base"` // of the workspace, when it is applied
	At        time.Time `json:"at"`
	Phase     string    `json:"phase"`
	Made      []string  `json:"made,omitempty"` // folders that are made
	Moves     []move    `json:"moves"`
}

// move is one file that is written or removed. Paths have slashes and are relative to the
// target.
type move struct {
	Path   string `json:"path"`
	Draft  string `json:"draft,omitempty"` // the new file beside its place; empty: the file goes
	Old    string `json:"old,omitempty"`   // what the file before is kept as; empty: there was none
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// performing carries out a journal.
type performing struct {
	*target
	journal
	root *os.Root
}

// perform writes what was decided: all of it or, with an error, nothing.
func (t *target) perform(steps []step, of *space, base string) error {
	root, err := os.OpenRoot(t.dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // all writes are synced
	p := &performing{target: t, root: root, journal: journal{Target: t.dir, Workspace: of.is.Name, Base: base, At: t.Now().UTC(), Phase: phaseDrafting}}
	if err := p.intend(steps); err != nil {
		return err
	}
	t.Crashpoints.At(CrashApplyIntended)
	if err := p.draft(steps); err != nil {
		return errors.Join(err, p.takeBack())
	}
	if err := p.unchanged(steps); err != nil {
		return errors.Join(err, p.takeBack())
	}
	p.Phase = phasePlacing
	if err := p.write(); err != nil {
		return errors.Join(err, p.takeBack())
	}
	t.Crashpoints.At(CrashApplyReady)
	return p.placeAll()
}

// draftPrefix begins the names of files that are about to take their places.
const draftPrefix = ".rye-apply-"

// intend writes the journal.
func (p *performing) intend(steps []step) error {
	stamp := strings.ToLower(string(thread.NewRun())[1:9])
	stepped, made := map[string]bool{}, map[string]bool{}
	for _, s := range steps {
		stepped[s.path] = true
	}
	for i, s := range steps {
		beside := p.standing(s.path, stepped)
		m := move{Path: s.path, Before: s.before.text()}
		name := draftPrefix + stamp + "-" + strconv.Itoa(i)
		if s.source != "" {
			m.Draft = path.Join(beside, name)
			after, err := s.after()
			if err != nil {
				return err
			}
			m.After = after
			p.addMade(path.Dir(s.path), made)
		}
		if m.Before != "" {
			m.Old = path.Join(beside, name+"-old")
		}
		p.Moves = append(p.Moves, m)
	}
	return p.write()
}

// standing is the nearest folder above a path that is there, and stays: none of the
// steps puts a file in the place of it, or of one above.
func (p *performing) standing(at string, stepped map[string]bool) string {
	found := ""
	for at = path.Dir(at); at != "."; at = path.Dir(at) {
		info, err := p.root.Lstat(filepath.FromSlash(at))
		there := err == nil && info.IsDir()
		if stepped[at] {
			found = ""
		} else if there && found == "" {
			found = at
		}
	}
	if found == "" {
		return "."
	}
	return found
}

// addMade takes note of folders that have to be made, those above first. Known has those
// that it was asked about.
func (p *performing) addMade(dir string, known map[string]bool) {
	if dir == "." || known[dir] {
		return
	}
	known[dir] = true
	if info, err := p.root.Lstat(filepath.FromSlash(dir)); err == nil && info.IsDir() {
		return
	}
	p.addMade(path.Dir(dir), known)
	p.Made = append(p.Made, dir)
}

func (p *performing) write() error {
	p.Type, p.Place = journalType, p.Seal().Place()
	data, err := p.Seal().Encode(p.journal)
	if err != nil {
		return err
	}
	file, err := p.file(".json")
	if err != nil {
		return err
	}
	return writeFile(file, data)
}

// goOn ends what a process was about when it was killed: every file comes to its place or,
// where somebody has changed one since, none does. The caller holds the lock of the target.
func (t *target) goOn() error {
	file, err := t.file(".json")
	if err != nil {
		return err
	}
	data, err := regular.Read(file, maxRead)
	if isMissing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	p := &performing{target: t}
	home, err := t.Seal().Open(data, &p.journal)
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	if p.Type != journalType || p.Place != home {
		return fmt.Errorf("read %s: it is no journal of this project", file)
	}
	if p.root, err = os.OpenRoot(p.Target); isMissing(err) {
		return os.Remove(file) // the folder is gone, with all that was to be done
	}
	if err != nil {
		return err
	}
	defer func() { _ = p.root.Close() }() // all writes are synced
	switch p.Phase {
	case phasePlaced:
		return p.end()
	case phasePlacing:
		lacks, err := p.lacksDrafts()
		if err != nil {
			return err
		}
		if lacks {
			return p.takeBack()
		}
		err = p.placeAll()
		if errors.As(err, new(*ConflictError)) { // taken back
			return nil
		}
		return err
	}
	return p.takeBack()
}

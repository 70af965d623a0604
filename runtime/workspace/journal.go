package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// The phases of a journal. A file is in its place only from placing on.
const (
	phaseDrafting = "drafting" // nothing has been changed
	phasePlacing  = "placing"  // every new file is there, beside its place
	phasePlaced   = "placed"   // every file is in its place: from here on nothing is taken back
	phaseBack     = "taking_back"
)

const journalType = "applying"

// journal says what applying a workspace changes, so that whoever comes next can go on
// with it or take it back.
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
	defer func() { _ = root.Close() }() // what is written is synced
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

// intend writes the journal.
func (p *performing) intend(steps []step) error {
	stamp := strings.ToLower(string(thread.NewRun())[1:9])
	for i, s := range steps {
		beside := p.standing(s.path, steps)
		m := move{Path: s.path, Before: s.before.text()}
		name := ".rye-apply-" + stamp + "-" + strconv.Itoa(i)
		if s.source != "" {
			m.Draft = path.Join(beside, name)
			after, err := s.after()
			if err != nil {
				return err
			}
			m.After = after
			p.addMade(path.Dir(s.path))
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
func (p *performing) standing(at string, steps []step) string {
	found := ""
	for at = path.Dir(at); at != "."; at = path.Dir(at) {
		info, err := p.root.Lstat(filepath.FromSlash(at))
		there := err == nil && info.IsDir()
		if slices.ContainsFunc(steps, func(s step) bool { return s.path == at }) {
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

// addMade takes note of folders that have to be made.
func (p *performing) addMade(dir string) {
	if dir == "." || slices.Contains(p.Made, dir) {
		return
	}
	if info, err := p.root.Lstat(filepath.FromSlash(dir)); err == nil && info.IsDir() {
		return
	}
	p.addMade(path.Dir(dir))
	p.Made = append(p.Made, dir)
}

// after is the mark of the file that a step writes.
func (s step) after() (string, error) {
	dir, err := os.OpenRoot(filepath.Dir(s.source))
	if err != nil {
		return "", err
	}
	defer func() { _ = dir.Close() }() // only read
	m, err := markAt(dir, filepath.Base(s.source))
	m.exec = s.exec && m.kind == kindFile
	return m.text(), err
}

// draft writes each new file beside its place.
func (p *performing) draft(steps []step) error {
	for i, s := range steps {
		if s.source == "" {
			continue
		}
		if err := p.copyIn(s, p.Moves[i].Draft); err != nil {
			return err
		}
		p.Crashpoints.At(CrashApplyDrafted)
	}
	return nil
}

func (p *performing) copyIn(s step, draft string) error {
	name := filepath.FromSlash(draft)
	info, err := os.Lstat(s.source)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		to, err := os.Readlink(s.source)
		if err != nil {
			return err
		}
		return p.root.Symlink(to, name)
	}
	mode := fs.FileMode(0o666)
	if s.exec {
		mode = 0o777
	}
	from, err := os.Open(s.source)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // only read
	to, err := p.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if err == nil && s.info != nil && s.info.Mode().IsRegular() { // it keeps who may read it
		kept := s.info.Mode().Perm() &^ 0o111
		if s.exec {
			kept |= kept & 0o444 >> 2
		}
		err = to.Chmod(kept)
	}
	return errors.Join(err, to.Sync(), to.Close())
}

// unchanged looks whether every file is still what was looked at.
func (p *performing) unchanged(steps []step) error {
	var moved []Conflict
	for _, s := range steps {
		info, err := p.root.Lstat(filepath.FromSlash(s.path))
		if isMissing(err) || err == nil && info.IsDir() && s.info == nil {
			info, err = nil, nil
		}
		if err != nil {
			return err
		}
		same := (info == nil) == (s.info == nil)
		if same && info != nil {
			same = os.SameFile(info, s.info) && info.ModTime().Equal(s.info.ModTime()) && info.Size() == s.info.Size() && info.Mode() == s.info.Mode()
		}
		if !same {
			moved = append(moved, Conflict{Path: shownPath(s.path), Kind: kindMeanwhile, Here: "modified"})
		}
	}
	if len(moved) > 0 {
		return &ConflictError{moved}
	}
	return nil
}

// placeAll moves every file into its place or, with an error, none.
func (p *performing) placeAll() error {
	err := p.place()
	if err == nil {
		p.syncFolders()
		p.Phase = phasePlaced
		err = p.write()
	}
	if err != nil {
		p.Phase = phasePlacing
		return errors.Join(err, p.takeBack())
	}
	return p.end()
}

// place moves every file into its place. Moves that were made are passed over.
func (p *performing) place() error {
	for _, m := range p.Moves {
		if err := p.make(m); err != nil {
			return fmt.Errorf("apply %s: %w", shownPath(m.Path), err)
		}
		p.Crashpoints.At(CrashApplyPlaced)
	}
	return nil
}

func (p *performing) make(m move) error {
	at, draft, old := filepath.FromSlash(m.Path), filepath.FromSlash(m.Draft), filepath.FromSlash(m.Old)
	now, err := p.textAt(m.Path)
	switch {
	case err != nil:
		return err
	case now == m.After:
		return nil
	case now != m.Before:
		return &ConflictError{[]Conflict{{Path: shownPath(m.Path), Kind: kindMeanwhile, Here: "modified"}}}
	case m.Draft == "":
		return p.root.Rename(at, old)
	}
	if m.Before != "" {
		if err := p.keepOld(at, old); err != nil {
			return err
		}
	}
	if err := p.clear(m.Path); err != nil {
		return err
	}
	if err := p.root.MkdirAll(filepath.Dir(at), 0o777); err != nil {
		return err
	}
	return p.root.Rename(draft, at)
}

// textAt is the mark of what stands at a path; a folder that is about to be replaced is
// nothing.
func (p *performing) textAt(at string) (string, error) {
	info, err := p.root.Lstat(filepath.FromSlash(at))
	if isMissing(err) || err == nil && info.IsDir() {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	m, err := markOf(p.root, at, info)
	return m.text(), err
}

// clear removes the folders, empty by now, that stand where a file is to be.
func (p *performing) clear(at string) error {
	info, err := p.root.Lstat(filepath.FromSlash(at))
	if isMissing(err) || err == nil && !info.IsDir() {
		return nil
	}
	if err != nil {
		return err
	}
	var dirs []string
	err = fs.WalkDir(p.root.FS(), at, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	for _, dir := range slices.Backward(dirs) {
		if err == nil {
			err = p.root.Remove(filepath.FromSlash(dir))
		}
	}
	return err
}

// keepOld keeps a file under another name: by a link, or as a copy where the file system
// has none.
func (p *performing) keepOld(at, old string) error {
	err := p.root.Link(at, old)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	info, lerr := p.root.Lstat(at)
	if lerr != nil {
		return lerr
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		to, err := p.root.Readlink(at)
		if err != nil {
			return err
		}
		return p.root.Symlink(to, old)
	}
	from, err := p.root.Open(at)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // only read
	to, err := p.root.OpenFile(old, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Chmod(info.Mode().Perm()), to.Sync(), to.Close())
}

// end records that the workspace was applied, and sweeps.
func (p *performing) end() error {
	s, err := p.of(thread.Workspace{Name: p.Workspace})
	if err != nil {
		return err
	}
	switch a, err := s.read(); {
	case isMissing(err): // it was removed with its thread
	case err != nil:
		return err
	default:
		a.Base, a.AppliedAt = p.Base, p.At
		if err := s.write(a); err != nil {
			return err
		}
	}
	p.Crashpoints.At(CrashApplyRecorded)
	return p.sweep()
}

// syncFolders makes the moves survive a crash of the machine. A file system that cannot
// sync a folder has its own ways.
func (p *performing) syncFolders() {
	done := map[string]bool{}
	for _, m := range p.Moves {
		dir := path.Dir(m.Path)
		if done[dir] {
			continue
		}
		done[dir] = true
		if f, err := p.root.Open(filepath.FromSlash(dir)); err == nil {
			_ = f.Sync()
			_ = f.Close()
		}
	}
}

// sweep removes what stands beside the files, folders that are empty by the moves, and
// the journal.
func (p *performing) sweep() error {
	for _, m := range p.Moves {
		for _, beside := range []string{m.Draft, m.Old} {
			if beside == "" {
				continue
			}
			if err := p.root.Remove(filepath.FromSlash(beside)); err != nil && !isMissing(err) {
				return err
			}
		}
		if m.After == "" && p.Phase == phasePlaced {
			p.removeEmpty(path.Dir(m.Path))
		}
	}
	if p.Phase != phasePlaced {
		for _, dir := range slices.Backward(p.Made) {
			_ = p.root.Remove(filepath.FromSlash(dir)) // somebody may have put a file there
		}
	}
	p.Crashpoints.At(CrashApplySwept)
	file, err := p.file(".json")
	if err != nil {
		return err
	}
	return os.Remove(file)
}

// removeEmpty removes folders without anything in them, upwards, as git does.
func (p *performing) removeEmpty(dir string) {
	for ; dir != "."; dir = path.Dir(dir) {
		if info, err := p.root.Lstat(filepath.FromSlash(dir)); err != nil || !info.IsDir() {
			return
		}
		if p.root.Remove(filepath.FromSlash(dir)) != nil {
			return
		}
	}
}

// takeBack puts every file back that was moved. One that somebody has changed since stays
// as it is. The journal may stay behind, as on a full disk: goOn finds that the new files
// are gone.
func (p *performing) takeBack() error {
	var failed error
	if p.Phase == phasePlacing {
		p.Phase = phaseBack
		failed = p.write()
	}
	if p.Phase == phaseBack {
		for _, m := range slices.Backward(p.Moves) {
			if err := p.undo(m); err != nil {
				return errors.Join(failed, fmt.Errorf("take %s back: %w", shownPath(m.Path), err))
			}
		}
	}
	return errors.Join(failed, p.sweep())
}

// lacksDrafts reports whether a new file is neither in its place nor beside it.
func (p *performing) lacksDrafts() (bool, error) {
	for _, m := range p.Moves {
		if m.Draft == "" {
			continue
		}
		_, err := p.root.Lstat(filepath.FromSlash(m.Draft))
		if err == nil {
			continue
		}
		if !isMissing(err) {
			return false, err
		}
		if now, err := p.textAt(m.Path); err != nil || now != m.After {
			return err == nil, err
		}
	}
	return false, nil
}

func (p *performing) undo(m move) error {
	now, err := p.textAt(m.Path)
	if err != nil || now != m.After {
		return err
	}
	at := filepath.FromSlash(m.Path)
	if m.Old == "" {
		return p.root.Remove(at)
	}
	old := filepath.FromSlash(m.Old)
	if _, err := p.root.Lstat(old); isMissing(err) { // it has never gone
		return nil
	}
	if err := p.root.MkdirAll(filepath.Dir(at), 0o777); err != nil {
		return err
	}
	return p.root.Rename(old, at)
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
	data, err := os.ReadFile(file)
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
	defer func() { _ = p.root.Close() }() // what is written is synced
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

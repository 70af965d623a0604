package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/rye-mcp/rye-mcp/spaces/protect"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// place is where a path leads behind all links: a name in an open folder. Every
// folder on the way is open, so that what is read and written lies where it was
// judged to lie, whatever is renamed meanwhile.
type place struct {
	project *project
	want    protect.Access // it is refused with less
	asked   string         // the path as it was given
	folders []folder
	names   []string // from the project's root on
	missing []string // folders before the name that do not exist
	name    string   // empty for the last folder itself
	info    fs.FileInfo
	access  protect.Access
}

// folder is an open one. The first of a place is the project's root.
type folder struct {
	root *os.Root
	name string
	info fs.FileInfo
}

// Close closes the folders, but not the project's.
func (pl *place) Close() {
	for _, f := range pl.folders[1:] {
		_ = f.root.Close() // nothing was written through it that closing could lose
	}
	pl.folders = pl.folders[:1]
}

// in is the folder that the name stands in.
func (pl *place) in() *os.Root { return pl.folders[len(pl.folders)-1].root }

// rel is the place relative to the project, without links.
func (pl *place) rel() string {
	if len(pl.names) == 0 {
		return "."
	}
	return strings.Join(pl.names, string(filepath.Separator))
}

// isDir reports whether there is a directory.
func (pl *place) isDir() bool { return pl.info != nil && pl.info.IsDir() }

// maxLinks bounds the symbolic links of one path, as common kernels do.
const maxLinks = 40

// find follows a path to its place and judges it. The caller closes it.
func (p *project) find(rel string, want protect.Access) (*place, error) {
	pl := &place{project: p, want: want, asked: rel, folders: []folder{{root: p.root}}, access: protect.Writing}
	if err := p.walkTo(pl); err != nil {
		pl.Close()
		return nil, err
	}
	return pl, nil
}

func (p *project) walkTo(pl *place) error {
	info, err := p.root.Stat(".")
	if err != nil {
		return explain(pl.asked, err)
	}
	pl.folders[0].info, pl.info = info, info
	p.judge(pl)
	links := 0
	for todo := namesOf(pl.asked); len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		if name == ".." {
			if err := pl.up(); err != nil {
				return err
			}
			continue
		}
		link, err := p.enter(pl, name, len(todo) > 0)
		switch {
		case err != nil:
			return err
		case pl.access < pl.want:
			return pl.refusal()
		case link == "":
			if pl.info == nil && len(todo) > 0 {
				return p.beyond(pl, todo)
			}
			continue
		}
		if links++; links > maxLinks {
			return explain(pl.asked, fmt.Errorf("more than %d symbolic links", maxLinks))
		}
		todo = append(namesOf(link), todo...)
	}
	if pl.access < pl.want {
		return pl.refusal()
	}
	return nil
}

// namesOf are the steps of a path.
func namesOf(path string) []string {
	var names []string
	for name := range strings.SplitSeq(path, string(filepath.Separator)) {
		if name != "" && name != "." {
			names = append(names, name)
		}
	}
	return names
}

// up goes to the folder above.
func (pl *place) up() error {
	last := len(pl.folders) - 1
	if last == 0 {
		return outside(pl.asked)
	}
	_ = pl.folders[last].root.Close()
	pl.folders, pl.names = pl.folders[:last], pl.names[:len(pl.names)-1]
	pl.info = pl.folders[last-1].info
	return nil
}

// enter takes one step. It returns where a symbolic link leads, relative to the
// folder it stands in.
func (p *project) enter(pl *place, name string, more bool) (link string, err error) {
	in := pl.in()
	info, err := in.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		info, err = nil, nil
	}
	if err != nil {
		return "", explain(pl.asked, err)
	}
	pl.names, pl.info = append(pl.names, name), info
	p.judge(pl)
	switch {
	case info == nil:
		pl.name = name
	case info.Mode()&fs.ModeSymlink != 0:
		link, err = in.Readlink(name)
		if err == nil && filepath.IsAbs(link) {
			return "", explain(pl.asked, errAbsolute)
		}
		pl.names = pl.names[:len(pl.names)-1]
		if err == nil && len(namesOf(link)) == 0 { // "." and the like
			pl.info = pl.folders[len(pl.folders)-1].info
			return "", nil
		}
		return link, explain(pl.asked, err)
	case info.IsDir():
		return "", pl.push(name, info)
	case more:
		return "", explain(pl.asked, syscall.ENOTDIR)
	default:
		pl.name = name
	}
	return "", nil
}

// errAbsolute reads as the refusal of os.Root, see escapes.
var errAbsolute = errors.New("path escapes from parent")

// push opens a folder. It must be what was looked at: a link may stand there now.
func (pl *place) push(name string, info fs.FileInfo) error {
	root, err := openSame(pl.in(), name, info)
	if err != nil {
		return explain(pl.asked, err)
	}
	pl.folders = append(pl.folders, folder{root, name, info})
	return nil
}

// errMoved says that something has been put in the place of what was judged.
var errMoved = errors.New("it was moved or replaced while it was being opened")

// openSame opens the folder that info was seen of.
func openSame(in *os.Root, name string, info fs.FileInfo) (*os.Root, error) {
	root, err := in.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	now, err := root.Stat(".")
	if err == nil && !os.SameFile(info, now) {
		err = errMoved
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// beyond takes note of what would have to be made on the way to the name.
func (p *project) beyond(pl *place, todo []string) error {
	for _, name := range todo {
		if name == ".." {
			return explain(pl.asked, fs.ErrNotExist)
		}
		pl.missing = append(pl.missing, pl.name)
		pl.names, pl.name = append(pl.names, name), name
		p.judge(pl)
		if pl.access < pl.want {
			return pl.refusal()
		}
	}
	return nil
}

// judge lowers the access of a place to what the step it has come to allows.
func (p *project) judge(pl *place) {
	pl.access = min(pl.access, p.accessTo(pl.rel(), pl.info))
}

// accessTo judges what stands at a path relative to the project.
func (p *project) accessTo(rel string, info fs.FileInfo) protect.Access {
	return p.marks.Of(filepath.Join(p.real, rel), info)
}

// refusal tells a model what it may not touch.
func (pl *place) refusal() error {
	path := filepath.ToSlash(pl.asked)
	if pl.access == protect.Reading && pl.want == protect.Writing {
		return tool.Faultf(tool.CodeProtected, "%q is protected: it can be read and not written, because settings decide what threads may do and cost", path).
			With("path", path).WithHint("Ask the person to change it. Items below .ai/directives, .ai/tools and .ai/knowledge can be written.")
	}
	return tool.Faultf(tool.CodeProtected, "%q is protected: file tools do not touch %s", path, protect.Kept).
		With("path", path).WithHint("Ask the person if you need it. Everything else in the project can be used.")
}

// confirm looks whether the folders of a place are still where they were judged.
func (pl *place) confirm() error {
	for i, f := range pl.folders[1:] {
		now, err := pl.folders[i].root.Lstat(f.name)
		if err != nil || !os.SameFile(now, f.info) {
			return explain(pl.asked, errMoved)
		}
	}
	return nil
}

// maxReplaced bounds how often a file is opened that others replace meanwhile.
const maxReplaced = 100

// open opens the regular file of a place for reading. Writers replace files whole, so
// another one may stand there by now: it is judged like the first.
func (pl *place) open() (*os.File, fs.FileInfo, error) {
	if pl.info == nil {
		return nil, nil, explain(pl.asked, fs.ErrNotExist)
	}
	f, info, err := pl.openJudged()
	for tries := 1; errors.Is(err, errMoved) && tries < maxReplaced; tries++ {
		if err := pl.judgeAgain(); err != nil {
			return nil, nil, err
		}
		f, info, err = pl.openJudged()
	}
	return f, info, err
}

// openJudged opens the file that was judged. Anything but a regular file is refused
// before it is opened.
func (pl *place) openJudged() (*os.File, fs.FileInfo, error) {
	if err := checkRegular(pl.asked, pl.info); err != nil {
		return nil, nil, err
	}
	f, info, err := regular.Seen(pl.in(), pl.name, pl.info)
	if errors.Is(err, regular.ErrReplaced) {
		err = errMoved
	}
	if err != nil {
		return nil, nil, explain(pl.asked, err)
	}
	return f, info, nil
}

// judgeAgain judges what stands at the name of a place now.
func (pl *place) judgeAgain() error {
	info, err := pl.in().Lstat(pl.name)
	if err != nil {
		return explain(pl.asked, err)
	}
	pl.info = info
	pl.project.judge(pl)
	if pl.access < pl.want {
		return pl.refusal()
	}
	return nil
}

// make makes the folders that are missing.
func (pl *place) make() error {
	for _, name := range pl.missing {
		err := pl.in().Mkdir(name, 0o777)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return explain(pl.asked, fmt.Errorf("make its directory: %w", err))
		}
		info, err := pl.in().Lstat(name)
		if err != nil {
			return explain(pl.asked, err)
		}
		if !info.IsDir() {
			return explain(pl.asked, errMoved)
		}
		if err := pl.push(name, info); err != nil {
			return err
		}
	}
	pl.missing = nil
	return nil
}

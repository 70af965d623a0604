package protect

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/rye-mcp/rye-mcp/spaces/pathname"
)

// Marks are the protected files and folders of a project and of the user space,
// as what they are and not as what they are called. They are found once for a
// call of a tool.
type Marks struct {
	user [][]string // the user's .ai, as it is called and as it is, as names
	// own is the project itself where it is a workspace, which lies in the user's .ai.
	own   []string
	known []mark

	mu     sync.Mutex
	linked *linked // protected files with more than one name; nil until they are looked for
}

type mark struct {
	path   string
	info   fs.FileInfo
	access Access
}

// In finds what is protected in a project, for the user whose .ai lies in the
// folder user; empty for none.
func In(project, user string) *Marks {
	m := &Marks{}
	if user != "" {
		ai := filepath.Join(user, ".ai")
		m.own = ownTree(project, user)
		m.user = append(m.user, Split(ai))
		if real, err := filepath.EvalSymlinks(ai); err == nil && real != ai {
			m.user = append(m.user, Split(real))
		}
		for _, name := range []string{"", "config", "config/keys", "config/keys/signing", "config/keys/state", "config/keys/trusted", "trust"} {
			m.add(filepath.Join(user, ".ai", name), Nothing)
		}
	}
	for dir, names := range fixedPaths() {
		if dir = filepath.Join(project, dir); dir != project && !exists(dir) {
			continue // most of them: the rest need not be looked for
		}
		for _, name := range names {
			m.add(filepath.Join(dir, name), Nothing)
		}
	}
	m.add(filepath.Join(project, ".ai/config"), Reading)
	return m
}

// Workspaces is the folder of the user space, below .ai, that the workspaces of threads
// lie in.
const Workspaces = "workspaces"

// ownTree is the project as names if it is a workspace of the user, or nil.
func ownTree(project, user string) []string {
	all := pathname.Real(filepath.Join(user, ".ai", Workspaces))
	if rel, is := pathname.Inside(all, project); !is || rel == "." {
		return nil
	}
	return Split(project)
}

// add marks what is there, behind all links.
func (m *Marks) add(path string, access Access) {
	if info, err := os.Stat(path); err == nil {
		m.known = append(m.known, mark{path, info, access})
	}
}

// exists reports whether anything is there, behind all links.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Of judges a file or folder by its absolute path, without links, and by what it
// is; info is nil where there is nothing. A file below a protected folder is not
// recognised by what it is: every folder on the way must be asked about.
func (m *Marks) Of(path string, info fs.FileInfo) Access {
	names := Split(path)
	access := ByName(names)
	for _, user := range m.user {
		if within(user, names) && (m.own == nil || !within(m.own, names)) {
			return Nothing
		}
	}
	if info == nil {
		return access
	}
	for _, known := range m.known {
		if os.SameFile(known.info, info) {
			access = min(access, known.access)
		}
	}
	if access == Nothing || !info.Mode().IsRegular() || linksOf(info) < 2 {
		return access
	}
	return min(access, m.linkedAccess(info))
}

// within tells whether a path is a folder or below it, by names as the most
// forgiving file system reads them.
func within(above, all []string) bool {
	if len(all) < len(above) {
		return false
	}
	for i := range above {
		if above[i] != all[i] && plain(above[i]) != plain(all[i]) {
			return false
		}
	}
	return true
}

// maxLinked bounds the search for protected files that have several names.
const maxLinked = 1 << 19

// linked are protected files with more than one name.
type linked struct {
	access map[identity]Access
	seen   int
}

// linkedAccess judges a file that has several names: one of the others may be
// protected. Only such files are looked for, and once.
func (m *Marks) linkedAccess(info fs.FileInfo) Access {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.linked == nil {
		m.linked = &linked{access: map[identity]Access{}}
		for _, known := range m.known {
			m.linked.collect(known)
		}
	}
	if m.linked.seen > maxLinked {
		return Nothing // it cannot be told from a protected one
	}
	if access, found := m.linked.access[identityOf(info)]; found {
		return access
	}
	return Writing
}

func (l *linked) collect(known mark) {
	root, err := filepath.EvalSymlinks(known.path)
	if err != nil {
		return
	}
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch l.seen++; {
		case err != nil:
			return nil //nolint:nilerr // the tools cannot look into it either
		case l.seen > maxLinked:
			return fs.SkipAll
		case d.IsDir() && unimportant(path):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		if info, err := d.Info(); err == nil && linksOf(info) > 1 {
			id := identityOf(info)
			if earlier, found := l.access[id]; !found || known.access < earlier {
				l.access[id] = known.access
			}
		}
		return nil
	})
}

// unimportant folders are large and hold copies of what stands elsewhere: git's
// objects, which clones of one repository share, and artifacts of threads.
func unimportant(path string) bool {
	name, above := filepath.Base(path), filepath.Base(filepath.Dir(path))
	return name == "objects" && above == ".git" || name == "lfs" && above == ".git"
}

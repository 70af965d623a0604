package resolve

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/foreign/claude"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// All lists the items of a kind in all spaces, shadowed ones included: project,
// user, system, and by id within. Folders and files that cannot be looked at
// are left out, as are symbolic links that leave their space; linked folders
// are not entered, because what they lead to is listed where it is. Neither are
// hidden folders and those that package managers fill; ids in them still
// resolve.
func (r *Resolver) All(kind item.Kind) ([]Entry, error) { return r.list(kind, true) }

// Items is [Resolver.All] without the records of threads. There may be very many of
// them, so their folder is not read.
func (r *Resolver) Items(kind item.Kind) ([]Entry, error) { return r.list(kind, false) }

func (r *Resolver) list(kind item.Kind, records bool) (entries []Entry, err error) {
	spaces, err := r.open(kind, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeAll(spaces)) }()
	for _, s := range spaces {
		listed := s.list(records)
		slices.SortStableFunc(listed, func(a, b Entry) int {
			return cmp.Or(
				cmp.Compare(a.ID, b.ID),
				cmp.Compare(slices.Index(kind.Extensions(), a.Ext), slices.Index(kind.Extensions(), b.Ext)),
			)
		})
		entries = append(entries, listed...)
	}
	return entries, nil
}

// list walks the space.
func (s space) list(records bool) []Entry {
	if s.place != nil && s.place.Form == claude.Skill {
		return s.listSkills()
	}
	fsys, dir := s.fsys, s.kind.Dir()
	if s.root != nil {
		fsys, dir = s.root.FS(), "."
	}
	var entries []Entry
	visit := func(name string, d fs.DirEntry, err error) error {
		// A file that cannot be read (err) is passed over; the walk goes on beside it.
		rel := strings.TrimPrefix(name, dir+"/")
		if err == nil && d.IsDir() && name != dir && (Skipped(d.Name()) || !records && s.kind == item.Knowledge && rel == item.ThreadRecords) {
			return fs.SkipDir
		}
		if err == nil && !d.IsDir() {
			if e, ok := s.listed(fsys, name, rel, d); ok {
				entries = append(entries, e)
			}
		}
		return nil
	}
	// The visitor returns no error, so neither does the walk.
	_ = fs.WalkDir(fsys, dir, visit)
	return entries
}

// listed returns the entry of a file when it is an item. Name is its path in
// fsys, rel the one within the folder of the kind.
func (s space) listed(fsys fs.FS, name, rel string, d fs.DirEntry) (Entry, bool) {
	id, ext, ok := s.id(rel)
	if !ok || item.CheckID(id) != nil || s.kind == item.Knowledge && item.NamesThread(id) {
		return Entry{}, false
	}
	// Stat follows a link, and fails on one that leaves the space. Nearly all are none,
	// and the folder that was read tells of them in a tenth of the time.
	info, err := d.Info()
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		info, err = fs.Stat(fsys, name)
	}
	if err != nil || !info.Mode().IsRegular() {
		return Entry{}, false
	}
	return s.entry(id, ext, info.Size(), info.ModTime()), true
}

// id is the item whose file a name in the folder of the kind is.
func (s space) id(name string) (id, ext string, ok bool) {
	ext = path.Ext(name)
	if s.place != nil {
		id, ok = s.place.ID(name)
		return id, ext, ok
	}
	return strings.TrimSuffix(name, ext), ext, slices.Contains(s.kind.Extensions(), ext)
}

// Skipped names folders that hold no items of their own.
func Skipped(dir string) bool {
	return strings.HasPrefix(dir, ".") || dir == "node_modules" || dir == "__pycache__"
}

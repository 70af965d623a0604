package finish

import (
	"errors"
	"io/fs"
	"math"
	"path"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/regular"
)

// Entry is a file among the knowledge entries about threads.
type Entry struct {
	Name   string // path below the folder .ai
	Draft  bool   // somebody was about to write an entry
	Size   int64
	Edited time.Time
}

// Entries visits the knowledge entries about threads, at most so many, until visit
// returns an error, and reports whether those were all. No link leads out of the folder
// .ai, nor that out of the project.
func (f *Finisher) Entries(most int, visit func(Entry) error) (all bool, err error) {
	if f.KnowledgeDir == "" {
		return true, nil
	}
	ai, err := f.openAI()
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, ai.Close()) }()
	below := f.below(threadsFolder)
	if info, err := ai.Lstat(below); err != nil || !info.IsDir() {
		return true, nil
	}
	listed := &someOf{FS: ai.FS(), most: most}
	walked := fs.WalkDir(listed, below, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			return nil
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		draft := isDraft(d.Name())
		if !draft && path.Ext(name) != ".md" {
			return nil
		}
		if most--; most < 0 {
			return errEnough
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			return nil
		}
		if err != nil {
			return err
		}
		return visit(Entry{Name: name, Draft: draft, Size: info.Size(), Edited: info.ModTime()})
	})
	if errors.Is(walked, errEnough) {
		return false, nil
	}
	return walked == nil && !listed.cut, walked
}

// someOf is a file system that lists at most so many entries of a folder, which the system
// below decides: a listing costs a look at each.
type someOf struct {
	fs.FS
	most int
	cut  bool // a folder has more
}

// ReadDir implements [fs.ReadDirFS].
func (s *someOf) ReadDir(name string) ([]fs.DirEntry, error) {
	if s.most == math.MaxInt {
		return fs.ReadDir(s.FS, name)
	}
	opened, err := s.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = opened.Close() }()
	folder, lists := opened.(fs.ReadDirFile)
	if !lists {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.ErrUnsupported}
	}
	entries, more, err := regular.ListSome(folder, s.most)
	s.cut = s.cut || more
	return entries, err
}

// errEnough ends a walk that may visit no more.
var errEnough = errors.New("enough entries were visited")

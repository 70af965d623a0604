package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/renameio/v2"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/protect"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Workspaces are those of the threads of a project. [Local] keeps them on this machine;
// a worker elsewhere has others.
type Workspaces interface {
	// Check refuses a workspace that could not be made here. It makes nothing. The error of one
	// that another machine may have, or make, is an [*ElsewhereError] or a [*LacksError]. A
	// workspace without a name is any.
	Check(ctx context.Context, w thread.Workspace) error
	// Enter makes a workspace, or finds it, and has this process work in it until leave
	// is called. The result says with what it began.
	Enter(ctx context.Context, w thread.Workspace) (now thread.Workspace, work tool.Work, leave func(), err error)
	// Pack records what a workspace is to begin with, for the machine that makes it: the
	// result has its commit, and the bundle what that machine may lack. Where the threads
	// of the project run on this machine alone the bundle is empty, and nothing is recorded.
	Pack(ctx context.Context, w thread.Workspace) (now thread.Workspace, bundle []byte, err error)
	// PackResult is Pack for what the thread has left. The result names this machine for as long
	// as others work in the workspace.
	PackResult(ctx context.Context, w thread.Workspace) (now thread.Workspace, bundle []byte, err error)
	// Receive makes the workspace here as its thread has left it on another machine, by what
	// travels. Where it is here already nothing is done. The error of one that another machine
	// alone has is an [*ElsewhereError].
	Receive(ctx context.Context, w thread.Workspace) error
	// Changes tells what has changed. The error of a workspace that is not there wraps
	// fs.ErrNotExist.
	Changes(ctx context.Context, w thread.Workspace) (thread.Changes, error)
	// Diff shows a page of what has changed.
	Diff(ctx context.Context, w thread.Workspace, r DiffRequest) (Diff, error)
	// Apply puts what has changed into the project or another workspace: all of it or,
	// with a *[ConflictError], nothing.
	Apply(ctx context.Context, w thread.Workspace, r ApplyRequest) (Applied, error)
	// Tidy removes a workspace that nobody works in and nothing has changed in, and
	// reports whether it is gone.
	Tidy(ctx context.Context, w thread.Workspace) (gone bool, err error)
	// Remove removes a workspace with all that has changed in it.
	Remove(ctx context.Context, w thread.Workspace) error
	// Sweep removes workspaces as Tidy does, and those that only repeat what has travelled and
	// over says that they are of no use any more. It goes on with what crashes have cut short,
	// and returns how many are gone. Over may be nil.
	Sweep(ctx context.Context, over func(Held) (Fate, error)) (removed int, err error)
	// Kept measures the workspaces.
	Kept() (Kept, error)
}

// Local are workspaces in the user space of this machine.
type Local struct {
	Project string                 // absolute, without links
	User    string                 // folder that holds the user's .ai
	Seal    func() *place.Seal     // of the project's state
	Environ []string               // of this process
	LeftOut func(path string) bool // files of the project, by slash path, that no workspace needs; may be nil
	Program string                 // git; empty: the one of PATH
	Scratch string                 // folder for git folders of our own, see [gitrepo.Temporary]
	Now     func() time.Time
	// Bundles loads a bundle that a thread has among its artifacts; nil: the threads of the
	// project run on this machine alone.
	Bundles func(of thread.ID, name string) ([]byte, error)
	// Machine names this machine and its user among those that share the threads, and Called is
	// what people call it.
	Machine, Called string
	// Crashpoints is told of [Crashpoints].
	Crashpoints thread.Crashpoints

	mine    sync.Map // locks of users that this process holds, by their paths
	applied sync.Map // what AppliedAt has found, by names
}

var _ Workspaces = (*Local)(nil)

// environ is that of git, whose program is none of the project's.
func (l *Local) environ() []string { return process.Outside(l.Environ, l.Project) }

// Held is a workspace on this machine, as a sweep tells of it.
type Held struct {
	Workspace thread.Workspace // as it was when its files were made
	Result    string           // what its files were when the thread last ended; see [thread.Workspace]
	Machine   string           // this one
}

// Fate is what becomes of a workspace on this machine.
type Fate int

// The fates of workspaces.
const (
	Keep    Fate = iota // it stays unless nothing has changed in it
	Repeats             // it goes if its files are its Result
	Discard             // it goes with all that has changed in it
)

// base is the folder of all workspaces of the project.
func (l *Local) base() (string, error) {
	seal := l.Seal()
	if seal == nil {
		return "", place.ErrNoState
	}
	if l.User == "" {
		return "", errors.New("the user has no space for workspaces")
	}
	return filepath.Join(l.User, ".ai", protect.Workspaces, seal.Place()), nil
}

// space is the folder of one workspace.
type space struct {
	*Local
	dir  string
	is   thread.Workspace
	held *process.Lock // the lock, once it is held
}

// of is the folder of a workspace. Its name comes from a sealed thread.json, and is
// looked at all the same: it becomes a path.
func (l *Local) of(w thread.Workspace) (*space, error) {
	if !thread.IsWorkspaceName(w.Name) {
		return nil, fmt.Errorf("bug; %.60q names no workspace", w.Name)
	}
	base, err := l.base()
	return &space{Local: l, dir: filepath.Join(base, w.Name), is: w}, err
}

func (s *space) tree() string  { return filepath.Join(s.dir, "tree") }
func (s *space) git() string   { return filepath.Join(s.dir, "git") }
func (s *space) lent() string  { return filepath.Join(s.dir, "lent") }
func (s *space) index() string { return filepath.Join(s.dir, "index") }
func (s *space) users() string { return filepath.Join(s.dir, "users") }
func (s *space) about() string { return filepath.Join(s.dir, "workspace.json") }

// aboutType says what workspace.json is, so that no other sealed document is taken for
// it.
const aboutType = "workspace"

// about is workspace.json.
type about struct {
	Type      string           `json:"type"`
	Place     string           `json:"place"`
	Workspace thread.Workspace `json:"workspace"`
	Prefix    string           `json:"prefix,omitempty"` // of the project in the tree, with slashes
	// Base is the commit that changes are counted from: the baseline, or what was last
	// applied.
	Base      string    `json:"base"`
	AppliedAt time.Time `json:"applied_at,omitzero"`
	// Gone says that the files were removed, as there was nothing in them to apply.
	Gone bool `json:"gone,omitempty"`
	// Result is what the files were when the thread last ended, here or on the machine that
	// they came from; see [thread.Workspace].
	Result string `json:"result,omitempty"`
}

// read reads workspace.json. Without one the error wraps fs.ErrNotExist.
func (s *space) read() (about, error) {
	var a about
	data, err := regular.Read(s.about(), maxRead)
	if err != nil {
		return a, err
	}
	home, err := s.Seal().Open(data, &a)
	if err != nil {
		return about{}, fmt.Errorf("read %s: %w", s.about(), err)
	}
	if a.Type != aboutType || a.Place != home || a.Workspace.Name != s.is.Name {
		return about{}, fmt.Errorf("read %s: it is that of another workspace", s.about())
	}
	return a, nil
}

// present is read for files that are still there.
func (s *space) present() (about, error) {
	a, err := s.read()
	if err == nil && a.Gone {
		err = &GoneError{AppliedAt: a.AppliedAt}
	}
	return a, err
}

// GoneError says that the files of a workspace were removed, as nothing in them was left
// to apply, or have not been made.
type GoneError struct {
	AppliedAt time.Time // zero: nothing ever was
	NotMade   bool      // the thread has ended, or rests as a copy, without a workspace
	NotBegun  bool      // it has no conversation either, so that it cannot be resumed
}

func (e *GoneError) Error() string {
	switch {
	case e.NotMade && e.NotBegun:
		return "the thread ended before it had begun, and made no workspace; rye_execute starts its directive again"
	case e.NotMade:
		return "the thread has made no workspace yet; resume_thread has it make one"
	case e.AppliedAt.IsZero():
		return "nothing was changed in the workspace, and it was removed"
	}
	return "what was changed in the workspace was applied at " + e.AppliedAt.Format(time.RFC3339) + ", and it was removed"
}

// Is makes it one of what is not there.
func (e *GoneError) Is(target error) bool { return target == fs.ErrNotExist }

func (s *space) write(a about) error {
	a.Type, a.Place = aboutType, s.Seal().Place()
	data, err := s.Seal().Encode(a)
	if err != nil {
		return err
	}
	return writeFile(s.about(), data)
}

// writeFile writes a file whole or not at all.
func writeFile(path string, data []byte) error {
	return renameio.WriteFile(path, data, 0o600, renameio.WithTempDir(filepath.Dir(path)))
}

// work is where tools work in a workspace.
func (s *space) work(a about) tool.Work {
	return tool.Work{Root: filepath.Join(s.tree(), filepath.FromSlash(a.Prefix)), Tree: s.tree(), Git: s.git(), Lent: filepath.Join(s.lent(), "objects")}
}

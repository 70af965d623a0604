package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/regular"
	"github.com/rye-mcp/rye-mcp/tools/gitrepo"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

const (
	// gitTime bounds one command of git.
	gitTime = 5 * time.Minute
	// maxSaid bounds what a command of git prints: the names of the largest workspace.
	maxSaid = 256 << 20
)

// git runs commands of git in a git folder of our own, for the objects of one workspace.
type git struct {
	program string
	dir     string // the git folder, which is removed with close
	environ []string
	objects []string      // variables that say where objects are read and written
	lock    *process.Lock // of the workspace that the commands work on; nil: they change none
}

// openGit makes a git folder for the objects of a workspace. Files are taken and given
// byte by byte. The caller closes it.
func (s *space) openGit() (*git, error) {
	environ := s.environ()
	program, err := gitrepo.Program(s.Program, environ)
	if err != nil {
		return nil, err
	}
	dir, err := gitrepo.Temporary(s.Scratch)
	if err != nil {
		return nil, err
	}
	config, err := regular.Read(filepath.Join(s.git(), "config"), maxRead)
	if err == nil {
		config = []byte(gitrepo.RawConfig(string(config)))
		err = makeGit(dir, config)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &git{program: program, dir: dir, environ: environ, lock: s.held, objects: []string{
		"GIT_OBJECT_DIRECTORY=" + filepath.Join(s.git(), "objects"),
		"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + filepath.Join(s.lent(), "objects"),
	}}, nil
}

// makeGit makes an empty git folder with a configuration.
func makeGit(dir string, config []byte) error {
	for _, name := range []string{"", "objects", "objects/info", "refs", "refs/heads", "info"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return err
		}
	}
	for name, text := range map[string][]byte{"HEAD": []byte("ref: refs/heads/none\n"), "config": config, "info/attributes": []byte(rawAttributes)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// rawAttributes take every conversion off: attributes of this file go before those of
// .gitattributes.
const rawAttributes = "* -text -ident !eol !filter !working-tree-encoding\n"

func (g *git) close() { _ = os.RemoveAll(g.dir) }

// call is one command.
type call struct {
	tree  string // working tree; empty: none
	index string // file of the index; empty: that of the git folder
	stdin []byte
	env   []string
	fails bool // exit codes are the caller's to judge
}

// run runs a command and returns what it prints.
func (g *git) run(ctx context.Context, c call, args ...string) ([]byte, int, error) {
	env := append([]string{"GIT_LITERAL_PATHSPECS=1"}, g.objects...)
	if c.index != "" {
		env = append(env, "GIT_INDEX_FILE="+c.index)
	}
	tree := c.tree
	if tree == "" {
		tree = g.dir
	}
	shared, err := g.shareLock()
	if err != nil {
		return nil, 0, err
	}
	result, err := process.Run(ctx, process.Command{
		Files: shared,
		Path:  g.program, Args: append([]string{"--no-pager"}, args...), Env: gitrepo.Environment(g.environ, g.dir, tree, append(env, c.env...)...),
		Dir: tree, Stdin: c.stdin, Timeout: gitTime, MaxOutput: maxSaid,
	})
	switch {
	case err != nil:
		return nil, 0, err
	case result.TimedOut:
		return nil, 0, tool.Faultf(tool.CodeTimeout, "git did not end within %v", gitTime).WithHint("The repository may be too large for a workspace; tell the person.")
	case result.Cancelled:
		return nil, 0, context.Cause(ctx)
	case result.Truncated:
		return nil, 0, tooLarge("the names of its files take more than 256 MiB")
	case result.ExitCode != 0 && !c.fails || result.ExitCode < 0:
		return nil, 0, gitFailed(args[0], string(result.Stderr), tree)
	}
	return result.Stdout, result.ExitCode, nil
}

// shareLock is the lock of the workspace for a command: one that outlives this process, for
// as long as the kernel takes to end it, keeps others out.
func (g *git) shareLock() ([]*os.File, error) {
	if g.lock == nil {
		return nil, nil
	}
	shared, err := g.lock.Share()
	return []*os.File{shared}, err
}

// line is run for a command that prints one line.
func (g *git) line(ctx context.Context, c call, args ...string) (string, error) {
	out, _, err := g.run(ctx, c, args...)
	return strings.TrimSpace(string(out)), err
}

// gitFailed says what a caller can do about a command that has failed and worked in a tree.
func gitFailed(command, said, tree string) error {
	said = gitrepo.Shown(strings.TrimSpace(said))
	f := tool.Faultf(tool.CodeToolFailed, "git %s failed: %.500s", command, said)
	if fullDisk(said, tree) {
		f = tool.Faultf(tool.CodeDiskFull, "the disk of the workspaces is full: git %s failed: %.500s", command, said)
		return f.WithHint("make room on the disk of the user space, then call again")
	}
	if lower := strings.ToLower(said); strings.Contains(lower, "bad object") || strings.Contains(lower, "unable to read") || strings.Contains(lower, "missing") {
		return f.WithHint("The repository has lost objects that the workspace began with (pruned, or a partial clone). The files of the workspace are as they were; tell the person.")
	}
	return f.WithHint("Tell the person.")
}

// fullDisk reports whether a command failed as there was no room. Of some files git does not
// say why they cannot be written.
func fullDisk(said, tree string) bool {
	for _, sure := range []string{"No space left", "Disk quota", "Out of diskspace"} {
		if strings.Contains(said, sure) {
			return true
		}
	}
	if !strings.Contains(said, "unable to write") {
		return false
	}
	f, err := os.CreateTemp(tree, "rye-room-")
	if err == nil {
		_, err = f.Write(make([]byte, 64<<10))
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func tooLarge(why string) error {
	return tool.Faultf(tool.CodeUnsupported, "the repository is too large for a workspace: %s", why).
		WithHint("Start the thread without a workspace, or ask the person to have git ignore what need not be there.")
}

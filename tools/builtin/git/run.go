package git

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/protect"
	"github.com/rye-mcp/rye-mcp/tools/gitrepo"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

const (
	maxTime   = 60 * time.Second
	pageBytes = 20_000 // JSON of the lines of a page, in a thread
)

// output is a page of what git has printed.
type output struct {
	Content    string `json:"content"`
	NextOffset int    `json:"next_offset,omitempty"`
	NextSkip   int    `json:"next_skip,omitempty"`
	Note       string `json:"note,omitempty"`
}

// call is one run of git.
type call struct {
	env     tool.Env
	args    []string
	offset  int                    // first line that is shown, from 1
	by      parameter              // that goes on at the next page; empty: byOffset
	before  int                    // lines, or records, that git itself was told to leave out before
	without func(line string) bool // lines that are left out beside signatures; may be nil
}

// git runs git in a repository and returns a page of what it prints.
func (g *reader) git(ctx context.Context, r repository, c call) (*output, error) {
	for _, arg := range c.args {
		if c.env.Masked(arg) != arg {
			return nil, tool.Faultf(tool.CodeBadArguments, "a secret cannot be an argument of git, which others on this machine can read").
				WithHint("Leave the secret out.")
		}
	}
	environ := process.Outside(g.deps.Environ, c.env.Project)
	program, err := gitrepo.Program(g.deps.Program, environ)
	if err != nil {
		return nil, err
	}
	dir, err := r.Shadow(g.deps.Scratch)
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // links and copies
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	p := newPager(c, stop)
	var printed io.Writer = p
	closing := func() error { return nil }
	if c.env.Mask != nil {
		masked := c.env.Mask.Writer(p)
		printed, closing = masked, masked.Close
	}
	result, err := process.Run(ctx, process.Command{
		Path: program, Args: append([]string{"--no-pager"}, c.args...), Env: gitrepo.Environment(environ, dir, r.Top), Dir: r.Top,
		Timeout: maxTime, Stdout: printed, MaxOutput: 64 << 10,
	})
	err = errors.Join(err, closing())
	p.end()
	switch {
	case err != nil:
		return nil, err
	case result.TimedOut:
		return nil, tool.Faultf(tool.CodeTimeout, "git did not answer within %v", maxTime).WithHint("Ask for less: one path, fewer commits.")
	case result.Cancelled && !p.full:
		return nil, context.Cause(ctx)
	case result.ExitCode != 0 && !p.full:
		return nil, r.failed(c.env, result)
	}
	return p.page(), nil
}

// failed explains why git refused. Its words can hold names of the repository's.
func (r repository) failed(env tool.Env, result process.Result) error {
	said := strings.TrimSpace(env.Masked(gitrepo.Shown(strings.TrimSpace(string(result.Stderr)))))
	lower := strings.ToLower(said)
	switch {
	case strings.Contains(lower, "does not have any commits"), noHead().MatchString(lower):
		return tool.Faultf(tool.CodeNotFound, "the repository has no commit yet").WithHint("Look at the files with rye/git/status.")
	case strings.Contains(lower, "unknown revision"), strings.Contains(lower, "bad revision"), strings.Contains(lower, "not a valid object name"),
		strings.Contains(lower, "needed a single revision"), strings.Contains(lower, "invalid object name"):
		return tool.Faultf(tool.CodeNotFound, "there is no such commit, branch or tag").WithHint("Find commits with rye/git/log.")
	case strings.Contains(lower, "does not exist in"), strings.Contains(lower, "no such path"), strings.Contains(lower, "exists on disk, but not in"),
		strings.Contains(lower, "bad file"), strings.Contains(lower, "has only"):
		return tool.Faultf(tool.CodeNotFound, "there is no such file, or no such line in it").WithHint("Look which files a commit changed with rye/git/show and stat true.")
	case r.Borrows():
		return gitrepo.Unreadable("it borrows objects from another one (objects/info/alternates)")
	}
	f := tool.Faultf(tool.CodeToolFailed, "git ended with exit code %d", result.ExitCode).WithHint("The repository may be damaged; tell the person.")
	if said != "" {
		f = f.With("stderr", item.Clip(said, 500))
	}
	return f
}

// noHead is what git says of a HEAD without a commit: of HEAD~9 it says that there is no
// such commit.
var noHead = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(ambiguous argument|bad revision) 'head(\^\{commit\})?'`)
})

// pathspecs limit a command to a path of the project and to what tools may read.
func (r repository) pathspecs(path string) ([]string, error) {
	within, err := r.path(path)
	if err != nil {
		return nil, err
	}
	specs := []string{"--", ":(top,literal)" + within}
	if within == "" {
		specs[1] = ":(top)"
	}
	for _, pattern := range protect.Patterns() {
		specs = append(specs, ":(top,exclude,icase,glob)"+pattern)
	}
	return specs, nil
}

// path is a path of the project as the repository has it, empty for all of it.
func (r repository) path(asked string) (string, error) {
	if strings.ContainsAny(asked, "\x00\n") {
		return "", tool.Faultf(tool.CodeBadArguments, "path holds a character that no path has").WithHint("Give a path relative to the project.")
	}
	if asked == "" {
		asked = "."
	}
	if filepath.IsAbs(asked) {
		rel, err := filepath.Rel(filepath.Join(r.Top, filepath.FromSlash(r.Prefix)), asked)
		if err != nil {
			rel = ".."
		}
		asked = rel
	}
	clean := filepath.Clean(filepath.FromSlash(asked))
	if !filepath.IsLocal(clean) {
		return "", tool.Faultf(tool.CodeOutsideProject, "path is outside the project").WithHint("Give a path relative to the project.")
	}
	full := filepath.ToSlash(filepath.Join(filepath.FromSlash(r.Prefix), clean))
	if protect.ByName(protect.Split(filepath.FromSlash(full))) == protect.Nothing {
		return "", tool.Faultf(tool.CodeProtected, "path is protected: tools do not touch %s", protect.Kept).
			WithHint("Ask the person if you need it.")
	}
	if full == "." {
		return "", nil
	}
	return full, nil
}

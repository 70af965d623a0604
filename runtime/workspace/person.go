package workspace

import (
	"context"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/spaces/protect"
)

// programs are folders in which other programs look for what they run, or obey.
var programs = map[string]bool{
	".ai": true, ".claude": true, ".codex": true, ".cursor": true, ".gemini": true, ".vscode": true, ".zed": true, ".idea": true, ".opencode": true,
}

// headForm is what git accepts in HEAD: a folder with such a file can be a repository,
// whose settings git obeys.
var headForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(ref:\s*refs/|[0-9a-f]{40})`) })

// needsPerson says why nobody but a person may apply a change; empty: anybody may.
func (n *state) needsPerson(ctx context.Context, c change) (string, error) {
	names := protect.Split(c.path)
	switch {
	case protect.ByName(names) != protect.Writing:
		return "protected", nil
	case protect.InAI(names):
		return "an item of the project", nil
	case slices.ContainsFunc(names, func(name string) bool { return programs[strings.ToLower(name)] }):
		return "in a folder that other programs obey", nil
	case c.newMode == modeLink:
		target, err := n.git.blob(ctx, c.newHash)
		if err != nil || leaves(c.path, string(target)) {
			return "a link out of the project", err
		}
	case c.newMode != modeNone && strings.EqualFold(path.Base(c.path), "HEAD"):
		content, err := n.git.blob(ctx, c.newHash)
		if err != nil || headForm().Match(content) {
			return "it would be part of a git repository, whose settings run commands", err
		}
	}
	return "", nil
}

// leaves reports whether a link at a path leads out of the tree by its words. A step up
// behind a name counts as one out: the name may be a link itself.
func leaves(at, target string) bool {
	if filepath.IsAbs(target) || target == "" {
		return true
	}
	down := false
	for _, name := range protect.Split(target) {
		if name == ".." && down {
			return true
		}
		down = down || name != ".." && name != "."
	}
	return !filepath.IsLocal(filepath.Join(filepath.Dir(filepath.FromSlash(at)), filepath.FromSlash(target)))
}

// blob is the content of a file.
func (g *git) blob(ctx context.Context, hash string) ([]byte, error) {
	out, _, err := g.run(ctx, call{}, "cat-file", "blob", hash)
	return out, err
}

package workspace

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
	"github.com/rye-mcp/rye-mcp/tools/gitrepo"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

const (
	// maxBundle bounds what travels of a workspace each way, in bytes. An artifact is held
	// in memory, and a thread keeps at most 256 MiB of them.
	maxBundle = 64 << 20
	// maxNeeded bounds the commits that a bundle needs. Beyond it the bundle is whole.
	maxNeeded = 200
)

// bundleHeader is the beginning of a bundle, as gitformat-bundle(5) has it.
type bundleHeader struct {
	needs   []string // commits that whoever takes it must have
	commits []string // those that it names
}

// errBundle says that a bundle is not as it was made here.
var errBundle = errors.New("the bundle is not one that was made for the workspace")

// readBundle takes a bundle apart. Nothing in the header is obeyed: refs are never made
// from it.
func readBundle(data []byte) (h bundleHeader, pack []byte, err error) {
	version, rest, _ := bytes.Cut(data, []byte("\n"))
	if v := string(version); v != "# v2 git bundle" && v != "# v3 git bundle" {
		return h, nil, errBundle
	}
	for {
		line, after, found := bytes.Cut(rest, []byte("\n"))
		if !found || len(line) > 4<<10 || len(h.needs)+len(h.commits) > maxNeeded+2 {
			return h, nil, errBundle
		}
		rest = after
		text := string(line)
		switch need, is := strings.CutPrefix(text, "-"); {
		case text == "":
			return h, rest, nil
		case strings.HasPrefix(text, "@object-format="):
		case is:
			id, _, _ := strings.Cut(need, " ")
			h.needs = append(h.needs, id)
		default:
			id, _, _ := strings.Cut(text, " ")
			h.commits = append(h.commits, id)
		}
		for _, id := range slices.Concat(h.needs, h.commits) {
			if !isCommit(id) {
				return h, nil, errBundle
			}
		}
	}
}

// isCommit reports whether a text has the form of the hash of a commit.
func isCommit(id string) bool {
	_, err := hex.DecodeString(id)
	return err == nil && (len(id) == 40 || len(id) == 64)
}

// published are the commits by which a remote of the repository has what a commit follows:
// other clones have them. There are none where no remote has any of it.
func (s *space) published(ctx context.Context, repo *gitrepo.Repository, commit string) ([]string, error) {
	if commit == "" {
		return nil, nil
	}
	g, err := s.openShadow(repo)
	if err != nil {
		return nil, err
	}
	defer g.close()
	out, code, err := g.run(ctx, call{tree: repo.Top, fails: true}, "rev-list", "--boundary", commit, "--not", "--remotes")
	if err != nil || code != 0 {
		return nil, err
	}
	if len(out) == 0 {
		return []string{commit}, nil
	}
	var known []string
	for line := range strings.Lines(string(out)) {
		if id, is := strings.CutPrefix(strings.TrimSpace(line), "-"); is {
			known = append(known, id)
		}
	}
	if len(known) > maxNeeded {
		return nil, nil
	}
	return known, nil
}

// isShallow reports whether a repository has no whole history to give away.
func isShallow(repo *gitrepo.Repository) bool {
	info, err := os.Lstat(filepath.Join(repo.Common, "shallow"))
	return err == nil && info.Size() > 0
}

// bundle packs commits, and what they need beside what others know.
func (s *space) bundle(ctx context.Context, g *git, known []string, commits ...string) ([]byte, error) {
	if err := copySmall(filepath.Join(s.git(), "shallow"), filepath.Join(g.dir, "shallow")); err != nil {
		return nil, err
	}
	file := filepath.Join(g.dir, "bundle")
	args := []string{"bundle", "create", "--quiet", file}
	for i, commit := range commits {
		ref := "refs/heads/" + s.is.Branch()
		if i > 0 {
			ref = "refs/rye/base"
		}
		path := filepath.Join(g.dir, filepath.FromSlash(ref))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(commit+"\n"), 0o600)); err != nil {
			return nil, err
		}
		args = append(args, ref)
	}
	for _, id := range known {
		args = append(args, "^"+id)
	}
	if _, _, err := g.run(ctx, call{}, args...); err != nil {
		return nil, err
	}
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxBundle {
		return nil, tooLargeToTravel(info.Size())
	}
	return regular.Read(file, maxBundle)
}

func tooLargeToTravel(size int64) error {
	return tool.Faultf(tool.CodeUnsupported, "what the workspace begins with is too large to travel: a bundle of %d MiB, and it may have %d", size>>20, maxBundle>>20).
		WithHint("Tell the person: only what no remote-tracking branch has must travel. Or start the thread without a workspace.").
		WithTry("git push or git fetch, have git ignore large files, or start without a workspace")
}

// unpack takes a bundle of a thread into the objects of the workspace. No ref is made of it,
// nothing of it is configuration, and the project's repository stays as it is. It must name
// the wanted commits and no others.
func (s *space) unpack(ctx context.Context, g *git, of thread.ID, name string, wanted ...string) error {
	data, err := s.Bundles(of, name)
	if err != nil {
		return altered(fmt.Errorf("the bundle %.16s cannot be had: %w", name, err))
	}
	if len(data) > maxBundle || nameOf(data) != name {
		return altered(fmt.Errorf("the bundle %.16s is not what it was", name))
	}
	head, pack, err := readBundle(data)
	if err != nil {
		return altered(err)
	}
	if len(head.commits) != len(wanted) || slices.ContainsFunc(wanted, func(id string) bool { return !slices.Contains(head.commits, id) }) {
		return altered(errBundle)
	}
	if err := s.needs(ctx, g, head.needs); err != nil {
		return err
	}
	if _, _, err := g.run(ctx, call{stdin: pack}, "index-pack", "--stdin", "--fix-thin", "--strict", "--max-input-size="+strconv.Itoa(maxBundle)); err != nil {
		return altered(err)
	}
	if lacks, err := g.lacks(ctx, wanted); err != nil || lacks != "" {
		return altered(cmp.Or(err, errBundle))
	}
	return nil
}

// nameOf is the name of a bundle.
func nameOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func altered(why error) error {
	if f, ok := errors.AsType[*tool.Fault](why); ok && f.Code == tool.CodeDiskFull {
		return f
	}
	return tool.Faultf(tool.CodeIntegrity, "the files of the workspace cannot be had: %w", why).
		WithHint("Start the thread again: it takes the files as they are now. Tell the person.").WithTry("rye-mcp threads verify, and start the thread again")
}

// lacks is the first of some commits that there is not; empty: all are there.
func (g *git) lacks(ctx context.Context, commits []string) (string, error) {
	if len(commits) == 0 {
		return "", nil
	}
	out, _, err := g.run(ctx, call{stdin: []byte(strings.Join(commits, "\n") + "\n")}, "cat-file", "--batch-check=%(objecttype)")
	if err != nil {
		return "", err
	}
	kinds := strings.Split(strings.TrimSpace(string(out)), "\n")
	for i, commit := range commits {
		if i >= len(kinds) || kinds[i] != "commit" {
			return commit, nil
		}
	}
	return "", nil
}

// fits refuses the tree of a commit from elsewhere that no workspace would have.
func (g *git) fits(ctx context.Context, commit string) error {
	out, _, err := g.run(ctx, call{}, "ls-tree", "-r", "-l", "-z", commit)
	if err != nil {
		return altered(err)
	}
	count, size := 0, int64(0)
	for entry := range strings.SplitSeq(string(bytes.TrimSuffix(out, []byte{0})), "\x00") {
		about, path, _ := strings.Cut(entry, "\t")
		parts := strings.Fields(about)
		switch {
		case entry == "":
			continue
		case len(parts) != 4 || parts[1] != "blob" || never(path):
			return altered(fmt.Errorf("%w: it has %.100q", errBundle, path))
		}
		bytes, err := strconv.ParseInt(parts[3], 10, 64)
		if count, size = count+1, size+bytes; err != nil || count > maxFiles || size > maxBytes {
			return tooLarge(fmt.Sprintf("a workspace may have %d files and %d GiB", maxFiles, maxBytes>>30))
		}
	}
	return nil
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/search"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// maxSaidAlike is how many findings of one kind are told; the others are
// counted.
const maxSaidAlike = 10

// spaces counts what the three spaces hold, and names what cannot be used.
func (d *doctor) spaces(ctx context.Context) []finding {
	var found []finding
	if d.userErr != nil {
		found = append(found, failf("set HOME or USER_SPACE", "the user space is not known: %v", d.userErr))
	}
	counts := map[item.Space]map[item.Kind]int{}
	var broken []finding
	older := 0
	for _, kind := range item.Kinds() {
		entries, err := resolve.New(d.roots).Items(kind)
		if err != nil {
			broken = append(broken, failf("make the folder readable", "%v", err))
			continue
		}
		for _, e := range entries {
			if counts[e.Space] == nil {
				counts[e.Space] = map[item.Kind]int{}
			}
			counts[e.Space][kind]++
		}
		bad, n := d.brokenItems(ctx, entries)
		broken, older = append(broken, bad...), older+n
		broken = append(broken, strayLinks(d.roots.Project, kind)...)
		if d.user != "" && d.user != d.project {
			broken = append(broken, strayLinks(d.user, kind)...)
		}
	}
	found = append(found, d.spaceSizes(counts)...)
	if older > 0 {
		found = append(found, warnf("rye-mcp sign --renew",
			"%s with older signatures of yours, which are for no kind and id and do not count", counted(older, "item")))
	}
	found = append(found, d.index()...)
	return append(found, few(broken)...)
}

// index says why the search index is made anew by each process, if it is.
func (d *doctor) index() []finding {
	where, err := search.DefaultPath(d.roots.Project, d.roots.User, d.sys.Getenv)
	if err == nil {
		err = search.CheckPlace(where, d.roots)
	}
	if err != nil {
		return []finding{warnf("RYE_CACHE_DIR=$HOME/.cache/rye-mcp, or another folder that is yours alone",
			"the search index is kept in memory, and made anew by each process: %v", err)}
	}
	return nil
}

func (d *doctor) spaceSizes(counts map[item.Space]map[item.Kind]int) []finding {
	var found []finding
	for _, s := range []struct {
		name item.Space
		dir  string
	}{{item.Project, d.project}, {item.User, d.user}, {item.System, ""}} {
		of := counts[s.name]
		said := fmt.Sprintf("%s: %s, %s, %d knowledge", s.name, counted(of[item.Directive], "directive"),
			counted(of[item.Tool], "tool"), of[item.Knowledge])
		ai := filepath.Join(s.dir, ".ai")
		switch _, err := os.Stat(ai); {
		case s.name == item.System:
			found = append(found, okf("%s", said))
		case s.dir == "":
			continue // told already
		case errors.Is(err, fs.ErrNotExist) && s.name == item.Project:
			found = append(found, warnf("rye-mcp init", "%s: there is no %s yet", s.name, ai))
		case errors.Is(err, fs.ErrNotExist):
			found = append(found, okf("%s: there is no %s, and there need not be", s.name, ai))
		case err != nil:
			found = append(found, failf("make the folder readable", "%s: %v", s.name, err))
		default:
			found = append(found, okf("%s (%s)", said, ai))
		}
	}
	return found
}

// brokenItems reads the items that can be reached by their id.
// Those that only have to be signed anew it counts.
func (d *doctor) brokenItems(ctx context.Context, entries []resolve.Entry) (broken []finding, older int) {
	read := map[string]bool{}
	for _, e := range entries {
		if read[e.ID] || ctx.Err() != nil {
			continue // the first one shadows the others
		}
		read[e.ID] = true
		found, err := resolve.New(d.roots).Find(e.Kind, e.ID)
		if err == nil {
			err = found.Parse()
		}
		if err != nil {
			broken = append(broken, warnf("mend the file", "%s %s cannot be used: %v", e.Kind, e.ID, err))
			continue
		}
		_, err = d.trust.Check(trust.SubjectOf(found))
		refused, ok := errors.AsType[*trust.RefusedError](err) // other errors are for those who look at settings and keys
		switch {
		case ok && refused.Renewable:
			older++
		case ok:
			broken = append(broken, warnf(refused.Try(), "%v", refused))
		}
	}
	return broken, older
}

// strayLinks names the symbolic links of a project that lead out of it or to
// nothing, and what cannot be read; both are left out where items are listed. It
// does not look at what threads have left: that is no item, and there can be very many.
func strayLinks(dir string, kind item.Kind) []finding {
	folder := filepath.Join(dir, ".ai", kind.Dir())
	ai, err := resolve.OpenAI(dir, item.Project)
	if err != nil {
		return nil // other findings report the error
	}
	defer func() { _ = ai.Close() }() // only read
	root, err := resolve.OpenFolder(ai, kind.Dir())
	if err != nil {
		return nil
	}
	defer func() { _ = root.Close() }()
	var found []finding
	// The visitor returns no error, so neither does the walk.
	_ = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err != nil {
			found = append(found, warnf("make it readable", "%s cannot be read: %v", path, err))
			return nil
		}
		if kind == item.Knowledge && name == item.ThreadRecords {
			return fs.SkipDir
		}
		if entry.Type()&fs.ModeSymlink == 0 {
			return nil
		}
		if _, err := root.Stat(name); err != nil {
			found = append(found, warnf("put a copy in its place",
				"%s is a symbolic link that leads out of the space or to nothing; it is not followed", path))
		}
		return nil
	})
	return found
}

// few leaves out most of what is too much to read.
func few(found []finding) []finding {
	if len(found) <= maxSaidAlike {
		return found
	}
	more := found[maxSaidAlike]
	for _, f := range found[maxSaidAlike:] {
		if f.Level == levelFail {
			more.Level = levelFail
		}
	}
	more.Detail, more.Try = fmt.Sprintf("and %d more like these", len(found)-maxSaidAlike), ""
	return append(found[:maxSaidAlike:maxSaidAlike], more)
}

// signingKey loads the key, which says itself what is wrong with it.
func (d *doctor) signingKey(context.Context) []finding {
	if d.user == "" {
		return []finding{warnf("set HOME or USER_SPACE", "there is no user space to look for a key in")}
	}
	key, err := sign.Load(d.user)
	switch {
	case errors.Is(err, sign.ErrNoKey):
		return []finding{warnf("rye-mcp keys generate", "there is none, so neither items nor receipts can be signed")}
	case err != nil:
		return []finding{failf("", "%v", err)}
	}
	found := []finding{okf("%s", key.Fingerprint())}
	dir := filepath.Join(d.user, ".ai", "config", "keys", "signing")
	if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o077 != 0 {
		found = append(found, warnf(fmt.Sprintf("chmod 700 %q", dir), "others can look into %s (mode %04o)", dir, info.Mode().Perm()))
	}
	return found
}

// signatures says how strictly signatures are taken, and which documents about
// keys were left out.
func (d *doctor) signatures(context.Context) []finding {
	settings, err := d.trust.Integrity()
	if err != nil {
		return []finding{failf("mend the file", "%v", err)}
	}
	var found []finding
	switch settings.Mode {
	case trust.Off:
		found = append(found, warnf("set integrity.mode in config/agent/agent.yaml of your user space to strict",
			"integrity.mode is off: items are executed whoever changed them"))
	case trust.Warn:
		found = append(found, warnf("set integrity.mode to strict and leave out "+devMode,
			"items without a good signature are executed with a warning (integrity.mode warn, or %s=1)", devMode))
	default:
		found = append(found, okf("only what a trusted key signed is executed"))
	}
	keyring, err := d.trust.Keyring()
	if err != nil {
		return found // the check of the signing key says why
	}
	for _, e := range keyring.List() {
		if e.Older {
			found = append(found, warnf("rye-mcp sign --renew", "key %s of %s does not count: %s", e.Fingerprint, e.Owner, e.Reason))
		}
		for _, note := range e.Notes {
			found = append(found, warnf("take it out of the file", "%s: %s", e.Path, note))
		}
	}
	for _, p := range keyring.Problems() {
		found = append(found, warnf(p.Mend, "%s is left out: %s", p.Path, p.Reason))
	}
	return few(found)
}

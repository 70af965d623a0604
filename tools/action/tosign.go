package action

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"gopkg.in/yaml.v3"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/pathname"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// toSign finds what a request names: an item, the items of a pattern that can be
// signed, or files.
func (a *Actions) toSign(c Caller, r SignRequest) ([]resolve.Entry, error) {
	kinds := item.Kinds()
	if r.ItemType != "" {
		kind, err := item.ParseKind(r.ItemType)
		if err != nil {
			return nil, badArgument("item_type", err)
		}
		kinds = []item.Kind{kind}
	}
	switch {
	case IsPath(r.ItemID) && r.Source != "":
		return nil, tool.Faultf(tool.CodeBadArguments, "source goes with an id or a pattern of ids; a path says by itself in which space it is").
			WithHint("Leave source out.")
	case IsPath(r.ItemID):
		return a.filesToSign(c, kinds, r.ItemID)
	case strings.ContainsAny(r.ItemID, patternRunes):
		return a.itemsToSign(a.in(c, r.Source), kinds, r.ItemID)
	}
	found, err := a.findIn(a.in(c, r.Source), c, "sign", r.ItemType, r.ItemID)
	if err != nil {
		return nil, err
	}
	if found.Space == item.System {
		return nil, systemItem(r.ItemID)
	}
	if item.NamesThread(found.ID) {
		return nil, noFile(found)
	}
	return []resolve.Entry{found.Entry}, nil
}

// patternRunes make a pattern of an id or a path.
const patternRunes = "*?[{"

// IsPath reports whether what is to be signed is named by a path and not by an
// id: an absolute path, or one that begins with a dot.
func IsPath(name string) bool { return filepath.IsAbs(name) || strings.HasPrefix(name, ".") }

func (a *Actions) itemsToSign(spaces *resolve.Resolver, kinds []item.Kind, pattern string) ([]resolve.Entry, error) {
	if !doublestar.ValidatePattern(pattern) {
		return nil, badPattern(pattern)
	}
	all, err := itemsOf(spaces, kinds)
	if err != nil {
		return nil, err
	}
	var entries []resolve.Entry
	system := false
	for _, e := range all {
		switch {
		case !doublestar.MatchUnvalidated(pattern, e.ID):
		case e.Space == item.System:
			system = true
		case e.Folder != "" && slices.ContainsFunc(entries, func(other resolve.Entry) bool {
			return other.Kind == e.Kind && other.Space == e.Space && other.ID == e.ID
		}): // the same skill for another program
		default:
			entries = append(entries, e)
		}
	}
	switch {
	case len(entries) > 0:
		return entries, nil
	case system:
		return nil, onlySystem(pattern)
	default:
		return nil, nothingMatches(pattern, all)
	}
}

// nothingMatches is about a pattern without items to sign. By * the folders below are
// often meant, too.
func nothingMatches(pattern string, all []resolve.Entry) *tool.Fault {
	f := tool.Faultf(tool.CodeNotFound, "nothing in the project or user space matches %q", pattern).
		WithHint("Find ids with rye_search.").WithTry("rye-mcp items list")
	wider := strings.ReplaceAll(pattern, "*", "**")
	if !strings.Contains(pattern, "*") || strings.Contains(pattern, "**") {
		return f
	}
	matching := 0
	for _, e := range all {
		if e.Space != item.System && doublestar.MatchUnvalidated(wider, e.ID) {
			matching++
		}
	}
	if matching == 0 {
		return f
	}
	return f.WithHint("* matches within one folder, ** across folders: %q matches %d.", wider, matching).WithTry("rye-mcp sign '%s'", wider)
}

// items lists the items of several kinds in all spaces.
func (a *Actions) items(kinds []item.Kind) ([]resolve.Entry, error) {
	return itemsOf(a.Resolver, kinds)
}

func itemsOf(spaces *resolve.Resolver, kinds []item.Kind) ([]resolve.Entry, error) {
	var all []resolve.Entry
	for _, kind := range kinds {
		entries, err := spaces.All(kind)
		if err != nil {
			return nil, err
		}
		all = append(all, entries...)
	}
	return all, nil
}

func badPattern(pattern string) *tool.Fault {
	return tool.Faultf(tool.CodeBadArguments, "%q is not a valid pattern", pattern).
		WithHint("* matches within one folder, ** across folders.")
}

func systemItem(id string) *tool.Fault {
	return tool.Faultf(tool.CodeUnsupported, "%s belongs to the system space, which is part of rye-mcp and cannot be signed", id).
		WithHint("Put a copy with the same id into the project or user space and sign that.")
}

// onlySystem is about a pattern that matches items of the system space alone.
func onlySystem(pattern string) *tool.Fault {
	return tool.Faultf(tool.CodeUnsupported, "nothing in the project or user space matches %q, and the system space is part of rye-mcp and cannot be signed", pattern).
		WithHint("Put a copy of an item, with the same id, into the project or user space and sign that.").WithTry("rye-mcp items list")
}

// filesToSign finds what a path, or a pattern of paths, leads to. A relative one
// is below the project. Threads have no capability that covers files, so they
// sign by id.
func (a *Actions) filesToSign(c Caller, kinds []item.Kind, path string) ([]resolve.Entry, error) {
	if c.InThread {
		return nil, tool.Faultf(tool.CodeUnsupported, "inside a thread, items are signed by their id and not by a path").
			WithHint("Give the id of the item and its item_type.")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.Env.Project, path)
	}
	paths, err := expand(path)
	if err != nil {
		return nil, err
	}
	all, err := a.items(kinds)
	if err != nil {
		return nil, err
	}
	// A system item has no file that could be the same.
	all = slices.DeleteFunc(all, func(e resolve.Entry) bool { return e.Space == item.System })
	entries := make([]resolve.Entry, 0, len(paths))
	for _, path := range paths {
		e, err := a.entryOf(path, all)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// expand lists the files of a pattern. A file whose name has the form of one is
// taken by its name.
func expand(path string) ([]string, error) {
	if _, err := os.Lstat(path); err == nil || !strings.ContainsAny(path, patternRunes) {
		return []string{path}, nil
	}
	paths, err := doublestar.FilepathGlob(path, doublestar.WithFilesOnly())
	if errors.Is(err, doublestar.ErrBadPattern) {
		return nil, badPattern(path)
	}
	if err == nil && len(paths) == 0 {
		return nil, tool.Faultf(tool.CodeNotFound, "no file matches %q", path)
	}
	return paths, err
}

// entryOf is the item whose file stands at a path, or a settings file.
func (a *Actions) entryOf(path string, items []resolve.Entry) (resolve.Entry, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return resolve.Entry{}, tool.Faultf(tool.CodeNotFound, "there is no file %s", path)
	}
	if err != nil {
		return resolve.Entry{}, err
	}
	for _, e := range items {
		if other, err := os.Stat(e.Path); err == nil && os.SameFile(info, other) {
			return e, nil
		}
	}
	settings := resolve.Entry{Path: path, Ext: filepath.Ext(path)}
	roots := a.Resolver.Roots()
	for _, in := range []struct {
		space item.Space
		dir   string
	}{{item.User, roots.User}, {item.Project, roots.Project}} {
		if settings.ID = settingsID(in.dir, path); settings.ID != "" && info.Mode().IsRegular() {
			settings.Space = in.space
			return settings, nil
		}
	}
	return resolve.Entry{}, tool.Faultf(tool.CodeBadArguments, "%s is no item and no settings file of the project or user space", path).
		WithHint("Items stand in .ai/directives, .ai/tools and .ai/knowledge, settings in .ai/config. Documents of keys are for the person.").
		WithTry("items stand in .ai/directives, .ai/tools and .ai/knowledge, settings in .ai/config; rye-mcp keys trust signs keys")
}

// settingsID is the path of a YAML file below the settings folder of a space; it is
// empty when the path leads elsewhere, be it by a link. A link within the folder
// has the name by which the settings are read, not that of the file it leads to.
func settingsID(dir, path string) string {
	if ext := filepath.Ext(path); dir == "" || ext != ".yaml" && ext != ".yml" {
		return ""
	}
	config := filepath.Join(dir, ".ai", "config")
	folder, err := filepath.EvalSymlinks(config)
	if err != nil {
		return ""
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	below, is := pathname.Inside(folder, real)
	if !is {
		return ""
	}
	if named, is := pathname.Inside(config, path); is {
		below = named
	}
	return filepath.ToSlash(below)
}

// CheckSettings makes sure that a settings file is one YAML mapping.
func CheckSettings(path string, src []byte) error {
	var values map[string]any
	decoder := yaml.NewDecoder(strings.NewReader(string(src)))
	err := decoder.Decode(&values)
	if err == nil && !errors.Is(decoder.Decode(new(yaml.Node)), io.EOF) {
		err = errors.New("want one YAML document")
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return tool.Faultf(tool.CodeInvalidConfig, "%s: %w", path, err).With("path", path)
	}
	return nil
}

package chain

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/pathname"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// place is where a tool and what it loads lie on disk.
type place struct {
	tool   string // its file
	base   string // the folder of tools of its space
	anchor string // the folder that it is part of
	cwd    string
	lib    string // that of the runtime
	spec   *anchorSpec
	// unsigned are files below the anchor that cannot be loaded.
	unsigned []string
	// warned are the warnings about files below it.
	warned []string
}

// Roots of an anchor.
const (
	rootToolDir    = "tool_dir"
	rootToolParent = "tool_parent"
	rootProject    = "project_path"
)

// findPlace finds the folder that the tool is part of, and the runtime's own.
func (m *making) findPlace(context.Context) error {
	var err error
	t := m.chain.Tool()
	if m.place.tool, err = m.builder.onDisk(t); err != nil {
		return err
	}
	m.place.base = strings.TrimSuffix(m.place.tool, filepath.FromSlash("/"+t.ID+t.Ext))
	m.place.anchor = filepath.Dir(m.place.tool)
	for i, s := range slices.Backward(m.specs) {
		if s.Anchor == nil {
			continue
		}
		if m.place.lib == "" {
			if m.place.lib, err = m.builder.libOf(&m.chain.Elements[i], s.Anchor); err != nil {
				return err
			}
		}
		m.place.spec = s.Anchor
	}
	s := m.place.spec
	if s == nil || s.Enabled != nil && !*s.Enabled || s.Mode == "never" {
		m.place.spec = nil
		return nil
	}
	if m.place.anchor, err = m.place.findAnchor(m.chain.Tool(), m.plan.Call.Project); err != nil {
		return err
	}
	if err := m.noStrangersCode(); err != nil {
		return err
	}
	m.anchored().Anchor = m.place.anchor
	return nil
}

// findAnchor goes up from the tool to the first folder with a marker, and no higher
// than the folder of tools.
func (p *place) findAnchor(t *Element, project string) (string, error) {
	dir := filepath.Dir(p.tool)
	switch p.spec.Root {
	case rootToolDir, "":
	case rootToolParent:
		dir = filepath.Dir(dir)
	case rootProject:
		return project, nil
	default:
		return "", tool.Faultf(tool.CodeInvalidItem, "the anchor of %s has the root %q; there are %s, %s and %s",
			t.ID, p.spec.Root, rootToolDir, rootToolParent, rootProject)
	}
	if p.spec.Mode == "always" {
		return dir, nil
	}
	for up := dir; pathname.Has(p.base, up); up = filepath.Dir(up) {
		for _, marker := range p.spec.MarkersAny {
			if _, err := os.Lstat(filepath.Join(up, filepath.Base(marker))); err == nil {
				return up, nil
			}
		}
	}
	return dir, nil
}

// noStrangersCode refuses a tool of a project that would load code beside it which
// nobody has signed, before the user has accepted what the project brings.
func (m *making) noStrangersCode() error {
	project := m.builder.Resolver.Roots().Project
	if m.chain.Tool().Space != item.Project || m.accepted() {
		return nil
	}
	for dir := filepath.Dir(m.place.tool); pathname.Has(project, dir); dir = filepath.Dir(dir) {
		for _, name := range m.place.spec.Unverified {
			found := filepath.Join(dir, name)
			if _, err := os.Lstat(found); err == nil {
				return tool.Faultf(tool.CodeIntegrity, "%s would load code from %s, which nobody has signed, and the person has not accepted what this project brings",
					m.chain.Tool().ID, found).WithHint("Ask the person.").
					WithTry("rye-mcp trust, after looking at %s", found)
			}
		}
	}
	return nil
}

// values are the names that neither the call nor an item can give another meaning.
func (p *place) values(m *making) map[string]any {
	roots := m.builder.spaces()
	v := map[string]any{
		"tool_path": p.tool, "tool_dir": filepath.Dir(p.tool), "tool_parent": filepath.Dir(filepath.Dir(p.tool)),
		"project_path": m.plan.Call.Dir(), "anchor_path": p.anchor, "runtime_lib": p.lib,
		"user_space": roots.User, "system_space": m.builder.World.Library,
	}
	if m.chain.Server != nil {
		v["server_config_path"] = m.chain.Server.Path
	}
	return v
}

// applyAnchor sets what the anchor says of the process. It comes after the search for
// interpreters, which does not look into folders of the anchor.
func (m *making) applyAnchor(context.Context) error {
	s := m.place.spec
	if s == nil {
		return nil
	}
	m.place.cwd = m.values.text(s.Cwd, nil)
	for _, name := range slices.Sorted(maps.Keys(s.EnvPaths)) {
		m.set(m.anchored(), name, m.joined(name, s.EnvPaths[name]))
	}
	return nil
}

// anchored is the step of the element whose anchor holds.
func (m *making) anchored() *Step {
	return &m.plan.Steps[slices.IndexFunc(m.specs, func(s spec) bool { return s.Anchor == m.place.spec })]
}

// joined is a list of folders around the value that a variable has.
func (m *making) joined(name string, paths pathSpec) string {
	var all []string
	for _, p := range paths.Prepend {
		all = append(all, m.values.text(p, nil))
	}
	if now, ok := m.inherited(name); ok && now != "" {
		all = append(all, now)
	}
	for _, p := range paths.Append {
		all = append(all, m.values.text(p, nil))
	}
	return strings.Join(slices.DeleteFunc(all, func(p string) bool { return p == "" }), string(os.PathListSeparator))
}

// inherited is the value that a variable would have without the anchor.
func (m *making) inherited(name string) (string, bool) {
	for _, entry := range slices.Backward(m.builder.base()) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// path are the folders from which a program loads modules by their names.
func (p *place) path() []string {
	return slices.Compact([]string{p.anchor, filepath.Dir(p.tool)})
}

// errNoLibrary says that nothing of the system space can be put on disk.
var errNoLibrary = errors.New("files of the system space cannot be put where a program can read them")

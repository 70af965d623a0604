package chain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/pathname"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// maxFiles is how many files below an anchor are looked at.
const maxFiles = 5000

// compiled are extensions of what interpreters load without a source. Nobody can sign
// such a file.
var compiled = []string{".so", ".pyd", ".pyc", ".pyo", ".node", ".dylib", ".dll", ".wasm"}

// verifyFiles verifies what the tool could load, before the process starts.
func (m *making) verifyFiles(context.Context) error {
	for _, s := range m.specs {
		if s.Verify == nil || !s.Verify.Enabled {
			continue
		}
		m.plan.Files = map[string]File{}
		if m.chain.Tool().Space != item.System {
			if err := m.verifyBelow(s.Verify); err != nil {
				return err
			}
			m.warnOfFiles()
		}
		m.addOwn(m.place.tool, m.chain.Tool().Hash)
		return m.addLibrary()
	}
	return nil
}

// warnOfFiles tells of files beside the tool that are used although their signatures
// are not good: of one by name, since there may be hundreds.
func (m *making) warnOfFiles() {
	if n := len(m.place.warned); n > 0 {
		m.warn("%s", m.place.warned[0])
		if n > 1 {
			m.warn("%d more files beside %s are used although their signatures are not good", n-1, m.chain.Tool().ID)
		}
	}
}

func (m *making) addOwn(name, hash string) { m.plan.Files[name] = File{SHA256: hash} }

// maxOwn bounds a file of what the runtime brings along, in bytes.
const maxOwn = 64 << 20

// addLibrary adds what the runtime brings along. It is part of the program, or else
// it lies beside a runtime of the user's and is verified like everything else.
func (m *making) addLibrary() error {
	if !pathname.Has(m.builder.World.Library, m.place.lib) || m.place.lib == "" {
		return nil
	}
	return filepath.WalkDir(m.place.lib, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := regular.ReadFollowed(name, maxOwn)
		if err == nil {
			m.addOwn(name, hashOf(content))
		}
		return err
	})
}

// verifyBelow verifies the files of the folder that the tool is part of.
func (m *making) verifyBelow(s *verifySpec) error {
	root, err := os.OpenRoot(m.place.base)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // only read
	from, is := pathname.Inside(m.place.base, m.place.topOf(s))
	if !is {
		return nil // the anchor is the project, or somewhere else: no items lie there
	}
	looked := 0
	return fs.WalkDir(root.FS(), filepath.ToSlash(from), func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != filepath.ToSlash(from) && (s.Recursive != nil && !*s.Recursive || slices.Contains(s.ExcludeDirs, d.Name())) {
				return fs.SkipDir
			}
			return nil
		}
		if looked++; looked > maxFiles {
			return tool.Faultf(tool.CodeUnsupported, "more than %d files lie in %s, all of which %s could load", maxFiles, m.place.anchor, m.chain.Tool().ID).
				WithHint("Put the tool into a folder of its own.")
		}
		return m.verifyFile(root, s, name, d)
	})
}

// topOf is the folder below which files are verified: the anchor, and for packages
// within packages the outermost, which relative imports can reach.
func (p *place) topOf(s *verifySpec) string {
	top := p.anchor
	if !s.Loader {
		return top
	}
	for up := top; pathname.Has(p.base, up) && up != p.base; up = filepath.Dir(up) {
		if _, err := os.Lstat(filepath.Join(up, "__init__.py")); err != nil {
			break
		}
		top = up
	}
	return top
}

// verifyFile verifies a file as the item that it is.
func (m *making) verifyFile(root *os.Root, s *verifySpec, name string, d fs.DirEntry) error {
	ext := path.Ext(name)
	full := filepath.Join(m.place.base, filepath.FromSlash(name))
	switch {
	case slices.Contains(compiled, ext), d.Type()&fs.ModeSymlink != 0 && leadsToFolder(root, name):
		if s.Loader {
			return nil // it loads nothing but what is listed
		}
		return tool.Faultf(tool.CodeIntegrity, "%s lies where %s loads code from, and cannot be signed", full, m.chain.Tool().ID).
			With("path", full).WithHint("Ask the person to remove it.")
	case !slices.Contains(s.Extensions, ext) || !slices.Contains(item.Tool.Extensions(), ext):
		return nil
	}
	content, err := resolve.Content(root, name)
	switch {
	case err != nil && s.Loader:
		m.place.unsigned = append(m.place.unsigned, full)
		return nil
	case err != nil:
		return fmt.Errorf("%s could not be verified: %w", full, err)
	}
	t := m.chain.Tool()
	if full == m.place.tool && hashOf(content) == t.Hash {
		return nil // verified as an element
	}
	decision, err := m.gate.Check(trust.Subject{
		Kind: item.Tool, ID: strings.TrimSuffix(name, ext), Space: t.Space, Path: full, Ext: ext, Content: content,
	})
	if err != nil {
		if s.Loader {
			m.place.unsigned = append(m.place.unsigned, full)
			return nil
		}
		return fmt.Errorf("%s could load it: %w", t.ID, err)
	}
	if decision.Warning != "" {
		m.place.warned = append(m.place.warned, decision.Warning)
	}
	m.plan.Files[full] = File{SHA256: hashOf(content)}
	return nil
}

func leadsToFolder(root *os.Root, name string) bool {
	info, err := root.Stat(name)
	return err != nil || info.IsDir() // one that leads out cannot be looked at
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

package resolve

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/foreign/claude"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// EachFolder calls visit with each of [Folders] that is there in a space, opened as it is
// to find items. The folder is closed when visit returns.
func EachFolder(dir string, of item.Space, visit func(folder string, root *os.Root) error) error {
	for _, kind := range item.Kinds() {
		root, err := openKind(dir, of, kind)
		if err := visited(".ai/"+kind.Dir(), root, err, visit); err != nil {
			return err
		}
		root, err = openSignatures(dir, of, kind)
		if err := visited(".ai/"+SignatureFolder(kind), root, err, visit); err != nil {
			return err
		}
	}
	for _, p := range claude.Places() {
		var root *os.Root
		if dir != "" {
			root = openPlace(dir, of, p.Folder)
		}
		if err := visited(p.Folder, root, nil, visit); err != nil {
			return err
		}
	}
	return nil
}

func visited(folder string, root *os.Root, err error, visit func(string, *os.Root) error) error {
	if err != nil || root == nil {
		return err
	}
	return errors.Join(visit(folder, root), root.Close())
}

// openSignatures opens the folder of detached signatures; nil when there is none.
func openSignatures(dir string, of item.Space, kind item.Kind) (*os.Root, error) {
	return openBelowAI(dir, of, SignatureFolder(kind), func(*os.Root) error { return nil })
}

// OpenFolderOf opens the one of [Folders] that a file lies in, whose path below the
// directory of the space is given, and says where in it the file lies. The error wraps
// fs.ErrNotExist where there is none.
func OpenFolderOf(dir string, of item.Space, file string) (root *os.Root, name string, err error) {
	for _, kind := range item.Kinds() {
		if rest, ok := strings.CutPrefix(file, ".ai/"+kind.Dir()+"/"); ok {
			root, err := openKind(dir, of, kind)
			return opened(root, rest, err)
		}
		if rest, ok := strings.CutPrefix(file, ".ai/"+SignatureFolder(kind)+"/"); ok {
			root, err := openSignatures(dir, of, kind)
			return opened(root, rest, err)
		}
	}
	for _, p := range claude.Places() {
		if rest, ok := strings.CutPrefix(file, p.Folder+"/"); ok && dir != "" {
			return opened(openPlace(dir, of, p.Folder), rest, nil)
		}
	}
	return nil, "", fs.ErrNotExist
}

func opened(root *os.Root, name string, err error) (*os.Root, string, error) {
	if root == nil && err == nil {
		err = fs.ErrNotExist
	}
	return root, name, err
}

// IsPart reports whether a file or folder of that name can be part of an item below one of
// [Folders]. Hidden ones are not, but in skills, whose signatures are over all their files.
func IsPart(folder, name string, isDir bool) bool {
	if path.Base(folder) == "skills" && !strings.HasPrefix(folder, ".ai/") {
		return !leftBehind(name)
	}
	return !strings.HasPrefix(name, ".") && (!isDir || !Skipped(name))
}

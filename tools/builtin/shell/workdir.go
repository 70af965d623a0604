package shell

import (
	"os"
	"path/filepath"

	"github.com/rye-mcp/rye-mcp/spaces/pathname"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// workingDir returns the folder to run in, with its symbolic links resolved.
// It refuses one outside the project, before looking whether that exists.
func workingDir(project, dir string) (string, error) {
	if project == "" {
		return "", tool.Faultf(tool.CodeNoProject, "there is no project to run a command in").
			WithHint("Name the project with project_path.")
	}
	root, err := filepath.EvalSymlinks(project)
	if err != nil {
		return "", tool.Faultf(tool.CodeNoProject, "the project %s cannot be opened: %w", project, err)
	}
	path := dir
	if !filepath.IsAbs(path) {
		path = filepath.Join(project, path)
	}
	if !pathname.Has(project, path) && !pathname.Has(root, path) {
		return "", outside(dir)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", tool.Faultf(tool.CodeBadArguments, "working_dir %q cannot be opened: %w", dir, err).
			WithHint("List the folders of the project with rye/file-system/ls.")
	}
	if !pathname.Has(root, real) {
		return "", outside(dir)
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return "", tool.Faultf(tool.CodeBadArguments, "working_dir %q is not a folder", dir)
	}
	return real, nil
}

func outside(dir string) error {
	return tool.Faultf(tool.CodeOutsideProject, "working_dir %q leaves the project", dir).
		WithHint("Give a folder inside the project, or leave working_dir out to run in the project's root.")
}

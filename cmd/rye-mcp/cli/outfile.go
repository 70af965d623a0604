package cli

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// outFile is a file that a person names for what a command makes.
type outFile struct {
	name      string
	overwrite bool
	perm      fs.FileMode
	example   string // a name for it, in advice
	// renews is what is in every file of this kind that is made anew with each run: one that
	// has it is replaced. Empty: there is a flag for that.
	renews string
}

// overwriteFlag gives a command the flag without which it replaces no file.
func (o *outFile) overwriteFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.overwrite, "overwrite", false, "replace the file, if it is there")
}

// check refuses what no file can be written to, before the work is done.
func (o outFile) check() error {
	if info, err := os.Stat(o.name); err == nil && !info.Mode().IsRegular() {
		return &usageError{message: o.name + " is not a file", try: filepath.Join(o.name, o.example)}
	}
	return nil
}

// write writes the file whole or not at all, and makes its folder. A file that has other
// bytes stays, unless it is to be overwritten.
func (o outFile) write(data []byte) error {
	if err := o.check(); err != nil {
		return err
	}
	has, err := os.ReadFile(o.name)
	if err == nil && bytes.Equal(has, data) {
		return nil
	}
	_, missing := os.Lstat(o.name)
	switch {
	case missing != nil, o.overwrite, o.renews != "" && bytes.Contains(has, []byte(o.renews)):
		return writeWhole(o.name, data, o.perm)
	case o.renews != "":
		return &usageError{message: o.name + " is there already, and is something else", try: "another name, such as " + o.example}
	default:
		return &usageError{message: o.name + " is there already, with other content", try: "another name, or --overwrite, which replaces it"}
	}
}

// writeWhole replaces a file, and makes its folder. Its errors tell of the name that the
// person gave, and not of a temporary file.
func writeWhole(name string, data []byte, perm fs.FileMode) error {
	dir := filepath.Dir(name)
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = renameio.WriteFile(name, data, perm, renameio.WithTempDir(dir))
	}
	if err == nil {
		return nil
	}
	try := "name a file in a folder that you can write to"
	f := tool.AsFault(err)
	if f.Code == tool.CodeDiskFull {
		try = "make room on the disk of " + dir
	}
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		err = failed.Err
	}
	return tool.Faultf(f.Code, "write %s: %w", name, err).WithTry("%s", try)
}

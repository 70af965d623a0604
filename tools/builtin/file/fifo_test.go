//go:build unix

package file

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Opening a named pipe would block until somebody writes to it.
func TestNotRegular(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := syscall.Mkfifo(filepath.Join(b.dir, "pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	b.refuse("read", in{"path": "pipe"}, tool.CodeBadArguments, "named pipe")
	b.refuse("write", in{"path": "pipe", "content": ""}, tool.CodeBadArguments, "named pipe")
	if r := do[grepResult](b, "grep", in{"pattern": "x"}); r.FilesSearched != 0 {
		t.Errorf("grep opened the pipe: %+v", r)
	}
}

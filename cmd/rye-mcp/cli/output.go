package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// tryOutput is what to do where standard output takes nothing.
const tryOutput = "give the output another place, such as | less, or a file where there is room"

// lostOutput is what is wrong with standard output, where that is what an error is about
// and nothing else has gone wrong. No disk of the project has to do with it.
func lostOutput(sys System, err error) error {
	out, isFile := sys.Stdout.(*os.File)
	lost, ok := errors.AsType[*fs.PathError](err)
	if _, other := errors.AsType[*tool.Fault](err); !isFile || !ok || other || lost.Op != "write" || lost.Path != out.Name() {
		return nil
	}
	return fmt.Errorf("standard output cannot be written: %w", lost.Err)
}

// heeding is a writer that remembers its first error. The help of a command drops what its
// writer says.
type heeding struct {
	io.Writer
	err error
}

func (h *heeding) Write(b []byte) (int, error) {
	n, err := h.Writer.Write(b)
	if h.err == nil {
		h.err = err
	}
	return n, err
}

// lost is why not all was written; nil where nobody reads any more, which is no failure.
func (h *heeding) lost() error {
	if errors.Is(h.err, syscall.EPIPE) {
		return nil
	}
	return h.err
}

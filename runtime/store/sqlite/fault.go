package sqlite

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	lib "modernc.org/sqlite/lib"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
)

// explain says of which file an error of SQLite is, and what it means: damage as
// a [store.CorruptError], a full disk as ENOSPC, what may not be written as the
// error of the operating system. Other errors it leaves alone.
func explain(path string, err error) error {
	code, ok := sharedfile.Code(err)
	if !ok {
		return err
	}
	switch code {
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		return &store.CorruptError{Path: path, Err: err}
	case lib.SQLITE_FULL:
		return fmt.Errorf("%s: %w: %w", path, syscall.ENOSPC, err)
	case lib.SQLITE_READONLY, lib.SQLITE_CANTOPEN, lib.SQLITE_PERM, lib.SQLITE_IOERR:
		for _, name := range []string{path, path + "-wal", path + "-shm", filepath.Dir(path)} {
			if cause := mayWrite(name); cause != nil {
				return fmt.Errorf("%w: %w", &fs.PathError{Op: "write", Path: name, Err: cause}, err)
			}
		}
		switch code {
		case lib.SQLITE_IOERR:
			return fmt.Errorf("%s: the disk is full or fails: %w", path, err)
		case lib.SQLITE_CANTOPEN: // SQLite does not tell why; too many files are open, for one
			if cause := mayOpen(path); cause != nil {
				return fmt.Errorf("%w: %w", cause, err)
			}
		}
	}
	return fmt.Errorf("%s: %w", path, err)
}

// mayOpen is why a file cannot be opened; nil when it can.
func mayOpen(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return file.Close()
}

package sqlite

import (
	"database/sql"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// SQLite does not tell why it cannot open a file; the system does.
func TestFileThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "gone.db")
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	err = explain(path, db.PingContext(t.Context()))
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "(14)") {
		t.Errorf("got %v", err)
	}
}

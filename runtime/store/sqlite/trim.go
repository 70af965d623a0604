package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlstore"
)

// mender is the [store.Mender] of a store.
type mender struct {
	sqlstore.Mender

	files *Store
}

// Mend implements [store.Store].
func (s *Store) Mend() store.Mender { return mender{sqlstore.Mender{Store: s.Store}, s} }

// mostLog is how long the log of a database may stand.
const mostLog = 1 << 20

// TrimLogs implements [store.Mender].
func (m mender) TrimLogs(ctx context.Context) (freed int64, err error) {
	var failed []error
	for _, d := range []*database{m.files.registry, m.files.ledger} {
		n, err := d.Trim(ctx, mostLog)
		freed += n
		failed = append(failed, err)
	}
	if err := errors.Join(failed...); err != nil {
		return freed, fmt.Errorf("trim the logs of the thread store: %w", err)
	}
	return freed, nil
}

// DropAside implements [store.Mender]. The names say when each was set aside, so that
// they are in order.
func (m mender) DropAside(_ context.Context, keep int) (dropped []string, err error) {
	kept, err := FootprintOf(m.files.dir)
	if err != nil {
		return nil, err
	}
	for _, path := range Files(m.files.dir) {
		mine := slices.DeleteFunc(slices.Clone(kept.SetAside), func(name string) bool {
			return !strings.HasPrefix(name, filepath.Base(path)+asideMark) || strings.HasSuffix(name, "-shm")
		})
		slices.Sort(mine)
		for _, name := range mine[:max(0, len(mine)-keep)] {
			for _, ending := range []string{"-wal", "-shm", ""} { // the database last: without it nobody finds the others
				if err := os.Remove(filepath.Join(m.files.dir, name+ending)); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return dropped, err
				}
			}
			dropped = append(dropped, name)
		}
	}
	return dropped, nil
}

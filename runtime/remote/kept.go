package remote

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/recordserver"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Names of files on the server.
const (
	metaName         = "thread.json"
	plainName        = "transcript.jsonl"
	packedName       = "transcript.jsonl.zst"
	capabilitiesName = "capabilities.md"
)

// kept are the records of one thread. Its parts are views of it.
type kept struct {
	*Records
	id    thread.ID
	run   thread.Run
	local records.Thread
	copy  copied
}

type (
	keptMeta         kept
	keptCapabilities kept
)

var _ records.Thread = (*kept)(nil)

// ID implements [records.Thread].
func (t *kept) ID() thread.ID { return t.id }

// Check implements [records.Thread].
func (t *kept) Check() error { return t.local.Check() }

// Prepare implements [records.Thread].
func (t *kept) Prepare() error { return t.local.Prepare() }

// Begun implements [records.Thread].
func (t *kept) Begun() (bool, error) {
	files, err := t.Server.Files(context.Background(), t.id)
	if err != nil {
		return false, err
	}
	for _, f := range files {
		if f.Name != capabilitiesName {
			return true, nil
		}
	}
	return false, nil
}

// Touched implements [records.Thread].
func (t *kept) Touched() (at time.Time, err error) {
	files, err := t.Server.Files(context.Background(), t.id)
	if err != nil {
		return at, err
	}
	for _, f := range files {
		if f.Changed.After(at) {
			at = f.Changed
		}
	}
	if len(files) == 0 {
		return t.local.Touched()
	}
	return at, nil
}

// RemoveLeftover implements [records.Thread].
func (t *kept) RemoveLeftover() (removed bool, err error) {
	files, err := t.Server.Files(context.Background(), t.id)
	if err != nil || len(files) > 0 {
		return false, err
	}
	return t.local.RemoveLeftover()
}

// Meta implements [records.Thread].
func (t *kept) Meta() records.Meta { return (*keptMeta)(t) }

// Capabilities implements [records.Thread].
func (t *kept) Capabilities() records.Text { return (*keptCapabilities)(t) }

// Log implements [records.Thread]. A log stays on the machine whose process wrote it.
func (t *kept) Log() records.Source { return t.local.Log() }

// writer is the writer of records other than the transcript.
func (t *kept) writer() recordserver.Writer { return recordserver.Writer{Thread: t.id, Run: t.run} }

// bring makes a document here what the server has. The error
// wraps fs.ErrNotExist when that has none.
func (t *kept) bring(name string) error {
	if a := t.writing(t.id); a != nil && a.holds(name) { // it is on its way there
		return nil
	}
	path, ctx := t.copy.path(name), context.Background()
	_, same, err := t.Server.Fetch(ctx, t.id, name, t.copy.hash(path, maxMeta), maxMeta)
	if same || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil && !there(path) {
		return err
	}
	release, err := t.lock()
	if err != nil {
		return err
	}
	defer release()
	content, same, err := t.Server.Fetch(ctx, t.id, name, t.copy.hash(path, maxMeta), maxMeta)
	switch {
	case errors.Is(err, fs.ErrNotExist): // of what was deleted elsewhere
		return errors.Join(err, gone(os.Remove(path)))
	case err != nil || same:
		return err
	}
	return t.copy.replace(path, content)
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// lock keeps other processes of this machine from changing the copy of the thread.
func (t *kept) lock() (release func(), err error) {
	ctx, done := context.WithTimeoutCause(context.Background(), t.Patience, fmt.Errorf("somebody else copies the records of %s", t.id))
	defer done()
	return t.copy.lock(ctx)
}

// write replaces a document: on the server, and then here.
func (t *kept) write(name string, content []byte) error {
	release, err := t.lock()
	if err != nil {
		return err
	}
	defer release()
	if a := t.writing(t.id); a != nil && a.by.Run == t.run {
		err = a.ship(&recordserver.Put{Name: name, Content: content})
	} else {
		err = t.Server.Put(context.Background(), t.writer(), recordserver.Put{Name: name, Content: content})
	}
	if err != nil {
		return err
	}
	t.Crashpoints.At(CrashDescribed)
	return t.copy.replace(t.copy.path(name), content)
}

// stamp is that of a file of the server.
func (t *kept) stamp(f recordserver.File) records.Stamp {
	return records.Stamp{Object: [2]uint64{t.copy.object(f.Name), uint64(f.Generation)}, Size: f.Content, Changed: f.Changed} //nolint:gosec // it counts up from 1
}

// object names a file among all of the server.
func (c copied) object(name string) uint64 {
	return binary.BigEndian.Uint64([]byte(c.key[:8])) ^ uint64(len(name))
}

// stampOf is the stamp of a document.
func (t *kept) stampOf(name string) (records.Stamp, error) {
	files, err := t.Server.Files(context.Background(), t.id)
	if err != nil {
		return records.Stamp{}, err
	}
	for _, f := range files {
		if f.Name == name {
			return t.stamp(f), nil
		}
	}
	return records.Stamp{}, fmt.Errorf("%s of %s: %w", name, t.id, fs.ErrNotExist)
}

// of is the thread whose metadata this is.
func (m *keptMeta) of() *kept { return (*kept)(m) }

// Read implements [records.Meta].
func (m *keptMeta) Read() (thread.Meta, error) {
	if err := m.of().bring(metaName); errors.Is(err, fs.ErrNotExist) {
		return thread.Meta{}, fmt.Errorf("%w: %s", thread.ErrNoMeta, m.id)
	} else if err != nil {
		return thread.Meta{}, err
	}
	return m.local.Meta().Read()
}

// Peek implements [records.Meta].
func (m *keptMeta) Peek() (thread.Meta, error) {
	if err := m.of().bring(metaName); err != nil {
		return thread.Meta{}, err
	}
	return m.local.Meta().Peek()
}

// Write implements [records.Meta]. Metadata of a thread that goes on, which its process
// writes, is shipped with the next checkpoint.
func (m *keptMeta) Write(meta thread.Meta) error {
	data, err := encoded(meta, m.Seal())
	if err != nil {
		return fmt.Errorf("write thread.json of %s: %w", m.id, err)
	}
	if a := m.writing(m.id); a != nil && a.by.Run == m.run && !meta.Status.Terminal() {
		return m.of().later(a, metaName, data)
	}
	return m.of().write(metaName, data)
}

// later writes a document here, and to the server with the next shipment.
func (t *kept) later(a *appender, name string, content []byte) error {
	release, err := t.lock()
	if err != nil {
		return err
	}
	defer release()
	a.later(recordserver.Put{Name: name, Content: content})
	return t.copy.replace(t.copy.path(name), content)
}

// Remove implements [records.Meta].
func (m *keptMeta) Remove() error {
	release, err := m.of().lock()
	if err != nil {
		return err
	}
	defer release()
	if err := m.Server.Drop(context.Background(), m.of().writer(), metaName); err != nil {
		return err
	}
	return gone(os.Remove(m.copy.path(metaName)))
}

// Signer implements [records.Meta].
func (m *keptMeta) Signer() string {
	if m.of().bring(metaName) != nil {
		return ""
	}
	return m.local.Meta().Signer()
}

// Stamp implements [records.Meta].
func (m *keptMeta) Stamp() (records.Stamp, error) { return m.of().stampOf(metaName) }

// Open implements [records.Source].
func (c *keptCapabilities) Open() (records.Reader, error) {
	if err := (*kept)(c).bring(capabilitiesName); err != nil {
		return nil, err
	}
	return c.local.Capabilities().Open()
}

// Stamp implements [records.Source].
func (c *keptCapabilities) Stamp() (records.Stamp, error) {
	return (*kept)(c).stampOf(capabilitiesName)
}

// Where implements [records.Source].
func (c *keptCapabilities) Where() string { return c.local.Capabilities().Where() }

// Write implements [records.Text].
func (c *keptCapabilities) Write(text []byte) error {
	if a := c.writing(c.id); a != nil && a.by.Run == c.run {
		return (*kept)(c).later(a, capabilitiesName, text)
	}
	return (*kept)(c).write(capabilitiesName, text)
}

package snapshot

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
)

// index is what the last snapshot of this machine found, so that the next one reads no file
// that has not changed. It belongs to one place and one program.
type index struct {
	name  Hash // of the snapshot
	files []indexed
}

type indexed struct {
	seen
	hash Hash
}

// settled is how long a file must not have changed before its state names its content: two
// writings within one tick of a file system's clock look the same.
const settled = 2 * time.Second

// fresh reports whether a file may change once more without that its state shows it.
func (s state) fresh(now time.Time) bool {
	return now.UnixNano()-max(s.modified, s.changed) < int64(settled)
}

// indexForm begins the file, with what it is for.
func indexForm(seal *place.Seal, by Program) string {
	return fmt.Sprintf("rye-snapshot-index 1 %s %q %s", seal.Place(), by.Version, by.System)
}

// encode writes the index as lines of text, which are read at nearly every start. The last
// one is a code that only the holder of the seal can make: another index would say of a
// file that it has not changed.
func (x *index) encode(seal *place.Seal, by Program) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n%s\n", indexForm(seal, by), x.name)
	line := []byte{}
	for _, f := range x.files {
		line = append(line[:0], f.space...)
		line = append(append(line, ' '), f.hash...)
		line = strconv.AppendBool(append(line, ' '), f.exec)
		for _, n := range []int64{f.size, f.state.modified, f.state.changed} {
			line = strconv.AppendInt(append(line, ' '), n, 10)
		}
		line = strconv.AppendUint(append(line, ' '), f.state.inode, 10)
		line = append(append(append(line, ' '), f.path...), '\n') // a path has no control characters
		b.Write(line)
	}
	code, err := seal.Code("snapshot index", b.String())
	b.WriteString(code + "\n")
	return b.Bytes(), err
}

// decodeIndex reads an index; nil for one of another form, place or program, and one that
// nobody vouches for.
func decodeIndex(data []byte, seal *place.Seal, by Program) *index {
	text := strings.TrimSuffix(string(data), "\n")
	end := strings.LastIndexByte(text, '\n')
	if end < 0 || !strings.HasPrefix(text, indexForm(seal, by)+"\n") {
		return nil
	}
	if code, err := seal.Code("snapshot index", text[:end+1]); err != nil || code != text[end+1:] {
		return nil
	}
	_, rest, _ := strings.Cut(text[:end], "\n")
	name, rest, _ := strings.Cut(rest, "\n")
	x := &index{name: Hash(name)}
	for line := range strings.Lines(rest) {
		f, ok := decodeIndexed(strings.TrimSuffix(line, "\n"))
		if !ok {
			return nil
		}
		x.files = append(x.files, f)
	}
	return x
}

func decodeIndexed(line string) (f indexed, ok bool) {
	parts := strings.SplitN(line, " ", 8)
	if len(parts) != 8 {
		return f, false
	}
	f.space, f.hash, f.exec, f.path = item.Space(parts[0]), Hash(parts[1]), parts[2] == "true", parts[7]
	for i, into := range []*int64{&f.size, &f.state.modified, &f.state.changed} {
		n, err := strconv.ParseInt(parts[3+i], 10, 64)
		if err != nil {
			return f, false
		}
		*into = n
	}
	inode, err := strconv.ParseUint(parts[6], 10, 64)
	f.state.inode = inode
	return f, err == nil && f.hash.Valid()
}

// maxIndex bounds what is read of an index.
const maxIndex = 16 << 20

// readIndex reads the index in a file; nil where there is none that counts.
func readIndex(file string, seal *place.Seal, by Program) *index {
	if file == "" {
		return nil
	}
	data, err := regular.Read(file, maxIndex)
	if err != nil {
		return nil
	}
	return decodeIndex(data, seal, by)
}

// write replaces the index in a file. One that cannot be written is made again.
func (x *index) write(file string, seal *place.Seal, by Program) error {
	data, err := x.encode(seal, by)
	if err != nil {
		return err
	}
	dir, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // nobody needs it after a crash of the machine
	draft := draftPrefix + rand.Text()
	if err := dir.WriteFile(draft, data, fileMode); err != nil {
		return err
	}
	return dir.Rename(draft, filepath.Base(file))
}

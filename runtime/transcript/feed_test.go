package transcript_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// TestFeed holds that each event of a growing transcript is read once, a line that is
// being written when it is whole, and another transcript in its place from its beginning.
func TestFeed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "transcript.jsonl")
	var feed transcript.Feed
	var got []string
	read := func(want string) {
		t.Helper()
		got = nil
		err := feed.Read(records.File(path), func() { got = append(got, "anew") }, func(e thread.Event, err error) {
			if err != nil {
				got = append(got, "damaged")
				return
			}
			got = append(got, fmt.Sprint(e.Seq))
		})
		if err != nil {
			t.Fatal(err)
		}
		if said := strings.Join(got, " "); said != want {
			t.Errorf("got %q, want %q", said, want)
		}
	}
	write := func(text string, how int) {
		t.Helper()
		f, err := os.OpenFile(path, how|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	line := func(seq int) string {
		return fmt.Sprintf(`{"timestamp":"2026-03-01T12:00:00.000Z","thread_id":"a/1","seq":%d,"event_type":"retry","payload":{}}`+"\n", seq)
	}
	if err := feed.Read(records.File(path), func() {}, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("a missing file: %v", err)
	}
	write(line(1)+line(2)+line(3)[:20], os.O_APPEND)
	read("anew 1 2")
	read("")
	write(line(3)[20:]+"what?\n"+line(5), os.O_APPEND)
	read("3 damaged 5")
	write(line(1), os.O_TRUNC)
	read("anew 1")
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	write(line(1)+line(2)+line(3), os.O_APPEND)
	read("anew 1 2 3")
}

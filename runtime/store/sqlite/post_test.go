package sqlite

import (
	"errors"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestPostThatFails: a database that cannot be read says nothing of the reader.
func TestPostThatFails(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), Options{})
	id := running(t, s, "a", "")
	if err := beside(t, s.registry, "ALTER TABLE messages RENAME COLUMN message_id TO another"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Post(t.Context(), thread.Message{ID: "m", Reader: id, Kind: thread.Steer, Text: "on", At: testTime}, store.NoteBound{})
	if err == nil || errors.As(err, new(*store.UnreadableError)) {
		t.Errorf("%v", err)
	}
}

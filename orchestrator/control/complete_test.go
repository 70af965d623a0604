package control

import (
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// A crash between the registry and thread.json leaves the two at odds; whoever
// looks, and every sweep, makes them agree again.
func TestEndIsCompleted(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	looks := map[string]func(*scene, thread.ID) error{
		"status": func(s *scene, id thread.ID) error { _, err := s.c.View.Status(s.ctx, id); return err },
		"sweep":  func(s *scene, _ thread.ID) error { _, err := s.c.Threads.Sweep(s.ctx); return err },
	}
	for name, look := range looks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			id := s.start("work", "")
			s.order(id, "spend 5", "complete")
			rec := s.row(id)
			<-s.puppet(id).gone

			dir := s.folder(id)
			meta, err := dir.ReadMeta(s.c.Threads.Records.Seal())
			s.noError(err)
			whole := meta
			meta.Status, meta.Outcome, meta.Transcript = thread.Running, nil, nil
			s.noError(dir.WriteMeta(meta, s.c.Threads.Records.Seal()))

			s.noError(look(s, id))
			after, err := dir.ReadMeta(s.c.Threads.Records.Seal())
			s.noError(err)
			if after.Status != thread.Completed || after.Outcome == nil || *after.Transcript != *whole.Transcript {
				s.Errorf("thread.json after the look: %+v, want %+v", after, whole)
			}
			if again := s.row(id); again.Status != rec.Status || again.Cost != rec.Cost {
				s.Errorf("row %+v, was %+v", again, rec)
			}
		})
	}
}

package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// stage puts threads together on this machine.
type stage struct {
	onStage

	of *Records
}

// onStage is a stage in folders. Stage is also a method.
type onStage = records.Stage

// Stage implements [records.Records].
func (r *Records) Stage() (records.Stage, error) {
	s, err := r.Local.Stage()
	if err != nil {
		return nil, err
	}
	return &stage{onStage: s, of: r}, nil
}

// Move implements [records.Stage]: the records go to the server, the metadata last. One
// that was cut short is begun anew.
func (s *stage) Move(id thread.ID) error {
	to := s.of.Of(id)
	if begun, err := to.Begun(); err != nil {
		return err
	} else if begun {
		return fmt.Errorf("%s: %w", id, fs.ErrExist)
	}
	if err := to.Whole().Remove(); err != nil { // the record here is a copy of nothing
		return err
	}
	if err := move(s.Of(id), to); err != nil {
		return errors.Join(fmt.Errorf("move %s: %w", id, err), to.Whole().Remove())
	}
	return nil
}

// move writes what one thread has left as that of another.
func move(from, to records.Thread) error {
	if err := to.Prepare(); err != nil {
		return err
	}
	err := from.Artifacts().Each(func(name string, open func() (records.Reader, error)) error {
		if !isArtifact().MatchString(name) {
			return nil
		}
		content, err := records.ReadAll(open, maxArtifacts)
		if err == nil {
			_, err = to.Artifacts().Write(name[:64], content)
		}
		return err
	})
	if err != nil {
		return err
	}
	text, err := records.ReadAll(from.Capabilities().Open, maxArtifacts)
	if err == nil {
		err = to.Capabilities().Write(text)
	}
	if gone(err) != nil {
		return err
	}
	if err := moveWords(from.Transcript(), to.Transcript()); err != nil {
		return err
	}
	meta, err := from.Meta().Read()
	if errors.Is(err, thread.ErrNoMeta) {
		return nil
	}
	if err != nil {
		return err
	}
	return to.Meta().Write(meta)
}

func moveWords(from, to records.Transcript) error {
	if _, err := from.Stamp(); err != nil {
		return gone(err)
	}
	w, err := to.Append()
	if err != nil {
		return err
	}
	return errors.Join(records.CopyTo(w, from.Open), w.Sync(), w.Close())
}

// Prune removes copies of threads that the server has no more: others have deleted them.
// It returns how many. Gone takes away what else the threads have left on this machine.
func (r *Records) Prune(ctx context.Context, gone func([]thread.ID) error) (removed int, err error) {
	var ids []thread.ID
	_, err = r.Local.Walk(math.MaxInt, func(f records.Found) error {
		if !f.HasLives && !f.Linked && r.writing(f.ID) == nil {
			ids = append(ids, f.ID)
		}
		return ctx.Err()
	})
	for len(ids) > 0 && err == nil {
		some := ids[:min(len(ids), walkPage)]
		ids = ids[len(some):]
		var known map[thread.ID]bool
		if known, err = r.Server.Known(ctx, some); err != nil {
			break
		}
		some = slices.DeleteFunc(some, func(id thread.ID) bool { return known[id] })
		if len(some) == 0 {
			continue
		}
		if err = gone(some); err != nil {
			break
		}
		for _, id := range some {
			if ctx.Err() != nil {
				continue
			}
			of := r.By(id, "").(*kept)
			if err = errors.Join(of.local.Whole().Remove(), of.copy.forget()); err != nil {
				return removed, err
			}
			removed++
		}
	}
	return removed, err
}

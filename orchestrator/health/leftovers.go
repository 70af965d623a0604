package health

import (
	"context"
	"encoding/hex"
	"path"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/tools/builtin/artifact"
)

// draftGrace is how long a draft of a knowledge entry may be somebody's.
const draftGrace = time.Hour

// drafts visits what those have left who were about to write a knowledge entry.
func (c *Checker) drafts(ctx context.Context, most int, visit func(finish.Entry)) error {
	_, err := c.Threads.Finisher.Entries(most, func(e finish.Entry) error {
		if e.Draft && c.Threads.Now().Sub(e.Edited) > draftGrace {
			visit(e)
		}
		return context.Cause(ctx)
	})
	return err
}

func (r *reconciling) findDrafts(ctx context.Context) error {
	return r.drafts(ctx, mostFolders(r.all), func(e finish.Entry) {
		r.findMendable(findDraft, "", func(context.Context) (bool, error) {
			return true, r.Checker.Threads.Finisher.RemoveDraft(e)
		}, ".ai/%s", e.Name)
	})
}

// findDeletions looks for deletions that were cut short, and that nobody goes on with.
func (r *reconciling) findDeletions(ctx context.Context) error {
	open, err := r.Checker.Threads.Store.Deletions(ctx, store.DeletionFilter{Open: true, Limit: store.MaxPage})
	for _, d := range open {
		if r.GoOn != nil && !r.recent(d.At) {
			r.findMendable(findDeletion, d.Record.ThreadID, func(ctx context.Context) (bool, error) { return true, r.GoOn(ctx) },
				"it was deleted at %s, and something of it is left", d.At.UTC().Format(time.RFC3339))
		}
	}
	return err
}

// findArtifacts looks for what a crash has kept from being told: it was written, and the
// transcript does not name it.
func (r *reconciling) findArtifacts(ctx context.Context) error {
	for id, rec := range r.rows {
		f, found := r.seen[id]
		if !found || f.Linked || !f.HasWords || !rec.Status.Terminal() {
			continue
		}
		orphans, err := r.orphans(id)
		if err != nil {
			return err
		}
		for _, name := range orphans {
			r.findMendable(findArtifact, id, func(context.Context) (bool, error) { return r.removeArtifact(id, name) },
				"nothing in the transcript names %s", name)
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
	}
	return nil
}

// orphans are the artifacts of a thread that its transcript does not name.
func (r *reconciling) orphans(id thread.ID) (names []string, err error) {
	left := r.Checker.Threads.Records.Of(id)
	list, err := left.Artifacts().List()
	if err != nil || len(list) == 0 {
		return nil, err
	}
	words := []string{string(id)}
	for _, a := range list {
		if hash, ours := hashIn(a.Name); ours && path.Ext(a.Name) != thread.BundleSuffix {
			names, words = append(names, a.Name), append(words, artifact.Ref(hash))
		}
	}
	said, err := transcript.Mentions(left.Transcript(), words)
	if err != nil || !said[string(id)] { // it is not read as it is
		return nil, err
	}
	orphans := names[:0]
	for _, name := range names {
		if hash, _ := hashIn(name); !said[artifact.Ref(hash)] {
			orphans = append(orphans, name)
		}
	}
	return orphans, nil
}

// hashIn is the hash that names an artifact; others have put there what has none.
func hashIn(name string) (hash string, ours bool) {
	hash = strings.TrimSuffix(name, path.Ext(name))
	_, err := hex.DecodeString(hash)
	return hash, err == nil && len(hash) == 64
}

// removeArtifact removes an artifact whose content is what its name says.
func (r *reconciling) removeArtifact(id thread.ID, name string) (bool, error) {
	left := r.Checker.Threads.Records.Of(id)
	if held, err := r.Checker.Threads.Life.Held(life.Key{Thread: id}); held || err != nil {
		return false, err
	}
	hash, _ := hashIn(name)
	if _, err := left.Artifacts().Load(hash); err != nil {
		return false, err
	}
	return true, left.Artifacts().Remove(name)
}

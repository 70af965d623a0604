package digest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/handoff"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// Store is what is asked of the registry.
type Store interface {
	Get(ctx context.Context, id thread.ID) (thread.Record, error)
	ByRequestKey(ctx context.Context, key string) (thread.Record, error)
	Latest(ctx context.Context, directive string, of thread.ID) (thread.Record, error)
	Entries(ctx context.Context, id thread.ID, from, most int) ([]store.Entry, error)
}

// Source makes digests of the threads of one project, which are this user's: nothing is
// read but the registry, and records that the user's seal vouches for. It implements
// [resolve.Left].
type Source struct {
	Store   Store
	Records records.Records
}

var _ resolve.Left = (*Source)(nil)

// patience bounds how long the registry is asked: who looks for an item brings no time.
const patience = 30 * time.Second

// Find implements [resolve.Left]. The item that it finds is signed with the user's state
// key, as what the id says.
func (s *Source) Find(id string, of thread.ID) (*resolve.Found, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	rec, err := s.named(ctx, id, of)
	if err != nil {
		return nil, err
	}
	seal := s.Records.Seal()
	if seal == nil {
		return nil, none(id, "no thread of yours has run in this project")
	}
	d, err := s.Of(ctx, rec)
	if err != nil {
		return nil, fmt.Errorf("knowledge %q: %w", id, err)
	}
	front, err := yaml.Marshal(front{
		Name: path.Base(id), Title: "What " + string(rec.ThreadID) + " left", EntryType: "thread_digest",
		Category: path.Dir(id), ThreadID: rec.ThreadID, Directive: rec.Directive, Status: rec.Status,
	})
	if err != nil {
		return nil, err
	}
	text := fmt.Appendf(nil, "```yaml\n%s```\n\n%s", front, d.Text())
	text, err = seal.Attach(text, extension, sign.Name{Kind: string(item.Knowledge), ID: id}, rec.CompletedAt)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	return &resolve.Found{Entry: resolve.Entry{
		Kind: item.Knowledge, ID: id, Space: item.Project, Path: Path(rec.ThreadID), Ext: extension,
		Size: int64(len(text)), ModTime: rec.CompletedAt,
	}, Content: text, Hash: hex.EncodeToString(sum[:])}, nil
}

// extension is that of knowledge.
const extension = ".md"

// Path tells people where the digest of a thread comes from, which is no file.
func Path(id thread.ID) string { return "thread:" + string(id) }

// front is the metadata of a digest.
type front struct {
	Name      string       `yaml:"name"`
	Title     string       `yaml:"title"`
	EntryType string       `yaml:"entry_type"`
	Category  string       `yaml:"category"`
	ThreadID  thread.ID    `yaml:"thread_id"`
	Directive string       `yaml:"directive"`
	Status    thread.State `yaml:"status"`
}

// named is the thread that an id stands for, which has completed.
func (s *Source) named(ctx context.Context, id string, of thread.ID) (thread.Record, error) {
	if key, is := strings.CutPrefix(id, item.KeyedThread); is {
		rec, err := s.Store.ByRequestKey(ctx, key)
		if errors.Is(err, thread.ErrNotFound) {
			return rec, none(id, "no thread has that request key")
		}
		if err != nil {
			return rec, err
		}
		return s.completed(ctx, id, rec)
	}
	directive := strings.TrimPrefix(id, item.LatestThread)
	rec, err := s.Store.Latest(ctx, directive, of)
	if errors.Is(err, thread.ErrNotFound) {
		return rec, none(id, "no thread of the directive "+item.Shown(directive)+" has completed in this project")
	}
	if err != nil || rec.Status == thread.Completed {
		return rec, err
	}
	return rec, none(id, whyNot(rec))
}

// completed is the last thread of a chain that has completed, from its first on.
func (s *Source) completed(ctx context.Context, id string, rec thread.Record) (thread.Record, error) {
	var last thread.Record
	for now, seen := rec, map[thread.ID]bool{}; ; {
		seen[now.ThreadID] = true
		if now.Status == thread.Completed {
			last = now
		}
		rec = now
		next := now.ContinuationThreadID
		if next == "" || seen[next] {
			break
		}
		var err error
		if now, err = s.Store.Get(ctx, next); errors.Is(err, thread.ErrNotFound) {
			break
		} else if err != nil {
			return now, err
		}
	}
	if last.ThreadID == "" {
		return last, none(id, whyNot(rec))
	}
	return last, nil
}

// whyNot says why there is nothing of a thread, and what to do.
func whyNot(rec thread.Record) string {
	switch {
	case rec.Queued():
		return fmt.Sprintf("thread %s has not completed, it is queued; wait for it", rec.ThreadID)
	case !rec.Status.Terminal():
		return fmt.Sprintf("thread %s has not completed, it is %s; wait for it", rec.ThreadID, rec.Status)
	default:
		return fmt.Sprintf("thread %s has not completed, it ended as %s; run its directive again, or resume it", rec.ThreadID, rec.Status)
	}
}

func none(id, why string) error {
	return &resolve.NotFoundError{Kind: item.Knowledge, ID: id, Why: why}
}

// Of is the digest of a thread that has completed.
func (s *Source) Of(ctx context.Context, rec thread.Record) (*Digest, error) {
	d := &Digest{
		Thread: rec.ThreadID, Directive: rec.Directive, Record: finish.RenderingID(rec),
		Ended: rec.CompletedAt.UTC().Format(time.RFC3339), Inputs: s.inputsOf(rec.ThreadID),
	}
	if rec.Outcome != nil {
		d.Outputs, d.Result = rec.Outcome.Outputs, rec.Outcome.Result
	}
	if rec.Kind == thread.KindSet {
		return d, s.addItems(ctx, d)
	}
	return d, s.addSaid(ctx, d, rec)
}

// inputsOf are the inputs of a thread, as far as its thread.json can be trusted.
func (s *Source) inputsOf(id thread.ID) map[string]any {
	meta, err := s.Records.Of(id).Meta().Read()
	if err != nil || meta.ThreadID != id {
		return nil
	}
	return meta.Inputs
}

// addItems adds what the items of a fan-out set have left. A set whose list was lost has
// the sum in its result.
func (s *Source) addItems(ctx context.Context, d *Digest) error {
	entries, err := s.Store.Entries(ctx, d.Thread, 0, math.MaxInt32)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Last == "" || e.Status != thread.Completed {
			continue
		}
		rec, err := s.Store.Get(ctx, e.Last)
		if errors.Is(err, thread.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		left := Entry{Position: e.Position + 1, Inputs: s.inputsOf(rec.ThreadID)}
		if rec.Outcome != nil {
			left.Outputs, left.Result = rec.Outcome.Outputs, rec.Outcome.Result
		}
		d.Items = append(d.Items, left)
	}
	return nil
}

// maxChain bounds how many threads of a chain are read.
const maxChain = 100

// addSaid adds what the transcripts of the chain say, as far as they verify.
func (s *Source) addSaid(ctx context.Context, d *Digest, rec thread.Record) error {
	var chain []records.Source
	for seen := map[thread.ID]bool{}; ; {
		seen[rec.ThreadID] = true
		if said := s.Records.Of(rec.ThreadID).Transcript(); s.vouchedFor(rec, said) {
			chain = append(chain, said)
		} else {
			d.Unread = true
		}
		before := rec.ContinuationOf
		if before == "" || seen[before] || len(seen) >= maxChain {
			break
		}
		var err error
		if rec, err = s.Store.Get(ctx, before); errors.Is(err, thread.ErrNotFound) {
			break
		} else if err != nil {
			return err
		}
	}
	slices.Reverse(chain)
	facts, err := handoff.FactsOf(chain...)
	if err != nil {
		return err
	}
	d.Noted, d.Said, d.Files = facts.Noted, facts.Said, facts.Files
	return nil
}

// vouchedFor reports whether the transcript of a thread is what was signed.
func (s *Source) vouchedFor(rec thread.Record, said records.Source) bool {
	meta, err := s.Records.Of(rec.ThreadID).Meta().Read()
	if err != nil || meta.ThreadID != rec.ThreadID {
		return false
	}
	report, err := transcript.Verify(said, s.Records.Seal(), meta.Transcript)
	return err == nil && report.ThreadID == rec.ThreadID
}

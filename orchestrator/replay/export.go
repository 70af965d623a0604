// Package replay makes recordings of threads and takes those of others in, and says what a
// recorded thread would be started with today, for [github.com/rye-mcp/rye-mcp/runtime/replay].
package replay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/orchestrator/settings"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/orchestrator/verify"
	"github.com/rye-mcp/rye-mcp/runtime/recording"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/secret"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Recorder makes recordings of the threads of a project.
type Recorder struct {
	Threads  *threads.Threads
	Verify   *verify.Checker
	Resolver *resolve.Resolver
	Settings *settings.Source
	Getenv   func(string) string
	// Paths are the folders whose names are shortened, longer ones first.
	Paths []recording.Path
}

// Scope says which threads are recorded with one.
type Scope struct {
	Chain bool // all that it continues, and that continue it
	Tree  bool // all below
}

// Record makes a recording of a thread. A thread that does not verify is not recorded. One
// that runs is recorded up to its last checkpoint.
func (x *Recorder) Record(ctx context.Context, id thread.ID, scope Scope) (*recording.Recording, error) {
	rows, err := x.rows(ctx, id, scope)
	if err != nil {
		return nil, threads.Fault(err)
	}
	var all []recording.Left
	used := &usedItems{resolver: x.Resolver}
	for _, rec := range rows {
		left, err := x.left(ctx, rec)
		if err != nil {
			return nil, threads.Fault(err)
		}
		used.of(left)
		all = append(all, left)
	}
	return recording.Build(all, used.list, x.Redactor())
}

// Redactor takes out of recordings what must not leave this machine.
func (x *Recorder) Redactor() recording.Redactor {
	values := map[string]string{}
	now := x.Settings.Begin()
	names := now.Providers.KeyVariables()
	if tools, _, err := now.Config.Tools(); err == nil {
		names = append(names, tools.Variables()...)
	}
	for _, name := range names {
		if value := x.Getenv(name); len(value) >= inputs.MinSecret && !strings.Contains(value, "://") { // an address is none
			values[name] = value
		}
	}
	return recording.Redactor{Secrets: secret.New(values), Paths: x.Paths}
}

// rows are the threads to record, the one that was asked for first.
func (x *Recorder) rows(ctx context.Context, id thread.ID, scope Scope) ([]thread.Record, error) {
	first, err := x.Threads.Settled(ctx, id)
	if err != nil {
		return nil, err
	}
	rows := []thread.Record{first}
	add := func(more []thread.Record) {
		for _, rec := range more {
			if !threads.InChain(rows, rec.ThreadID) {
				rows = append(rows, rec)
			}
		}
	}
	if scope.Chain {
		chain, err := x.Threads.Chain(ctx, id)
		if err != nil {
			return nil, err
		}
		add(chain)
	}
	if scope.Tree {
		for _, rec := range slices.Clone(rows) {
			below, err := x.Threads.Store.Descendants(ctx, rec.ThreadID)
			if err != nil {
				return nil, err
			}
			add(below)
		}
	}
	rows = slices.DeleteFunc(rows, func(rec thread.Record) bool { return rec.Kind != thread.KindDirective })
	if len(rows) == 0 || rows[0].ThreadID != first.ThreadID {
		return nil, tool.Faultf(tool.CodeUnsupported, "%s has no conversation of its own: it is no run of a directive", id).
			WithTry("record the thread that started it, or one below it")
	}
	return rows, nil
}

// left reads what a thread has left, once that is verified.
func (x *Recorder) left(ctx context.Context, rec thread.Record) (recording.Left, error) {
	checked, err := x.Verify.Check(ctx, []thread.ID{rec.ThreadID})
	if err != nil {
		return recording.Left{}, err
	}
	verdict := checked.Threads[0]
	if !verdict.Verified {
		return recording.Left{}, tool.Faultf(tool.CodeIntegrity, "thread %s does not verify: %s: %s",
			rec.ThreadID, verdict.Findings[0].File, verdict.Findings[0].Detail).WithTry("rye-mcp threads verify %s", rec.ThreadID)
	}
	of := x.Threads.Records.Of(rec.ThreadID)
	l := recording.Left{}
	if l.Meta, err = x.Threads.OwnMeta(rec.ThreadID); err != nil {
		return l, err
	}
	if l.Transcript, err = readAll(of.Transcript(), verdict.Transcript.SignedBytes); err != nil {
		return l, err
	}
	if len(l.Transcript) == 0 {
		return l, tool.Faultf(tool.CodeUnsupported, "thread %s has no checkpoint yet, so nothing of it can be vouched for", rec.ThreadID).
			WithTry("rye-mcp threads wait %s", rec.ThreadID)
	}
	l.Head = headOf(l, verdict)
	if l.Capabilities, err = capabilitiesOf(of); err != nil {
		return l, err
	}
	l.Artifacts, err = artifactsOf(of)
	return l, err
}

// headOf fixes what of the transcript was recorded.
func headOf(l recording.Left, v verify.Verdict) thread.TranscriptHead {
	return thread.TranscriptHead{Checkpoints: v.Transcript.Checkpoints, Bytes: int64(len(l.Transcript)), Hash: hashOf(l.Transcript)}
}

// maxRead bounds what is read of one record: more has no room in a recording.
const maxRead = 256 << 20

func readAll(from records.Source, most int64) ([]byte, error) {
	if most > maxRead {
		return nil, fmt.Errorf("%s has %d MB, more than a recording holds", from.Where(), most>>20)
	}
	return records.ReadAll(from.Open, most)
}

// capabilitiesOf is the record of what a thread could do, without its signature.
func capabilitiesOf(of records.Thread) ([]byte, error) {
	src, err := readAll(of.Capabilities(), maxRead)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	_, text := sign.Split(src, ".md")
	return text, nil
}

// artifactsOf are the artifacts of a thread that its model can read.
func artifactsOf(of records.Thread) (map[string][]byte, error) {
	found := map[string][]byte{}
	err := of.Artifacts().Each(func(name string, open func() (records.Reader, error)) error {
		if strings.HasPrefix(name, ".") || strings.HasSuffix(name, thread.BundleSuffix) { // it is being written, or has the project's files
			return nil
		}
		var err error
		found[name], err = records.ReadAll(open, maxRead)
		return err
	})
	return found, err
}

// usedItems are those that threads were made of, each once.
type usedItems struct {
	resolver *resolve.Resolver
	list     []recording.Used
}

func (u *usedItems) of(l recording.Left) {
	u.add(item.Directive, l.Meta.Directive, l.Meta.DirectiveHash)
	for _, link := range l.Meta.Chain {
		u.add(item.Directive, link.Directive, link.Hash)
	}
	for e, err := range l.Events() {
		if err != nil || e.Type != thread.EventContextInjected {
			continue
		}
		if p, err := transcript.Decode[transcript.ContextInjected](e); err == nil && p.Hash != "" {
			u.add(item.Knowledge, p.ItemID, p.Hash)
		}
	}
}

// add takes an item in, with its text where that is still the one that was used.
func (u *usedItems) add(kind item.Kind, id, hash string) {
	if slices.ContainsFunc(u.list, func(known recording.Used) bool { return known.Kind == kind && known.ID == id && known.Hash == hash }) {
		return
	}
	used := recording.Used{Kind: kind, ID: id, Hash: hash}
	if found, err := u.resolver.Find(kind, id); err == nil && found.Hash == hash {
		used.Content = found.Content
	}
	u.list = append(u.list, used)
}

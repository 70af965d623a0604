package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/health"
	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	remembered "github.com/rye-mcp/rye-mcp/runtime/memory"
	"github.com/rye-mcp/rye-mcp/runtime/prompt"
	"github.com/rye-mcp/rye-mcp/runtime/rag/embed"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	memtools "github.com/rye-mcp/rye-mcp/tools/builtin/memory"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// entryDeps is what the tools rye/memory/* need.
func (p *project) entryDeps() memtools.Deps {
	return memtools.Deps{
		Off: func() bool {
			if p.config == nil { // a command that looks at items alone
				return false
			}
			set, err := p.memorySettings()
			return err == nil && !set.Enabled
		},
		Open: func(_ context.Context, env tool.Env) (memtools.Memory, error) {
			opened, on, err := p.memory.open()
			if err != nil {
				return nil, err
			}
			if !on {
				return nil, memtools.ErrOff
			}
			return p.entries(opened, env.Purse)
		},
		Writer: p.writer, Subject: p.subject, MayAskAll: p.mayAskAll,
	}
}

// entries are those of the project as one call sees them; purse pays what it costs.
func (p *project) entries(opened openedMemory, purse tool.Purse) (*remembered.Book, error) {
	found, err := p.state.Find()
	if err != nil {
		return nil, err
	}
	recall := opened.settings.Recall
	client := p.memory.embedder(opened.settings, purse)
	index, lock := p.entriesOf(opened.index, found.Seal)
	return remembered.New(remembered.Deps{
		Index: index, Seal: found.Seal, Project: p.path, Lock: lock, Returned: p.returned,
		Make: func() (*place.Seal, error) {
			made, err := p.state.Make()
			return made.Seal, err
		},
		Embed: func(ctx context.Context, text string) (remembered.Embedded, error) {
			got, err := client.Embed(ctx, []string{text})
			switch _, none := errors.AsType[*embed.NoneError](err); {
			case none:
				return remembered.Embedded{}, remembered.ErrNoEndpoint
			case err != nil || len(got.Vectors) != 1:
				return remembered.Embedded{}, cmp.Or(unavailable(err), errNoVector)
			}
			return remembered.Embedded{Model: got.Model, Vector: got.Vectors[0]}, nil
		},
		MayActOn: func(ctx context.Context, caller, id thread.ID) error {
			if caller == id {
				return nil
			}
			return p.control.Threads.IsBelow(ctx, id, caller, "so what it returned is not for this thread to note")
		},
		Settings: remembered.Settings{Limit: recall.Limit, MinFloor: recall.MinFloor, ScoreRatio: recall.ScoreRatio, MaxTokens: recall.MaxTokens},
		Now:      p.state.finder.Now,
	}), nil
}

var errNoVector = errors.New("the endpoint of embeddings returned no vector")

// keptSettings are the settings of memory by which its file is found, also while they cannot
// be read: then it is where it lies by default, and the error says what to do.
func (p *project) keptSettings() (config.Memory, error) {
	set, err := p.memorySettings()
	if err != nil {
		set = config.Memory{Store: config.DefaultMemoryStore}
		err = fmt.Errorf("%w; mend that, and what is left goes with the next deletion or sweep", err)
	}
	return set, err
}

// entriesOffOrOn are the entries also while memory is off: the entries of a deleted thread
// go all the same. Nothing is made. With settings that cannot be read they are those of
// the default file, and unread says why there may be others.
func (p *project) entriesOffOrOn() (b *remembered.Book, unread, err error) {
	set, unread := p.keptSettings()
	b, err = p.entries(openedMemory{settings: set, index: p.memory.index(set.Store)}, nil)
	return b, unread, err
}

// Others who write entries are waited for so long.
const (
	entriesLease = "memory"
	entriesGrace = 30 * time.Second
)

// lockEntries waits for its turn to write entries of the project. A holder that does not go
// on is named.
func (p *project) lockEntries(ctx context.Context) (func(), error) {
	hold, err := p.control.Threads.AwaitLease(ctx, entriesLease, entriesGrace)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("write to memory: %w", err)
	}
	if err != nil {
		return nil, err
	}
	if hold == nil {
		return nil, tool.Faultf(tool.CodeBusy, "another process writes to memory and does not go on: %w", life.ErrHeld).WithHint("call again in a moment")
	}
	return func() { _ = hold.Release() }, nil // it ends with the process at the latest
}

// writer is who a call of a tool is by.
func (p *project) writer(ctx context.Context, id thread.ID) (memtools.Writer, error) {
	if id == "" {
		return memtools.Writer{By: memtools.ByClient}, nil
	}
	rec, err := p.store.Get(ctx, id)
	if err != nil {
		return memtools.Writer{}, err
	}
	return writerOf(rec), nil
}

func writerOf(rec thread.Record) memtools.Writer {
	return memtools.Writer{By: memtools.ByThread, Thread: rec.ThreadID, ChainRoot: cmp.Or(rec.ChainRootID, rec.ThreadID), Directive: rec.Directive}
}

// mayAskAll lets threads of the user's own directives alone see entries of other projects:
// one that a project brings along could carry them away.
func (p *project) mayAskAll(ctx context.Context, id thread.ID) error {
	if id != "" {
		rec, err := p.store.Get(ctx, id)
		if err != nil {
			return err
		}
		if found, err := p.resolver.Find(item.Directive, rec.Directive); err == nil && found.Space == item.User {
			return nil
		}
	}
	return tool.Faultf(tool.CodePermissionDenied, "entries of other projects come to directives of the user space alone").
		WithHint("Leave project out.").WithTry("rye-mcp memory list --all-projects")
}

// subject is the clean text of the directive that a thread runs.
func (p *project) subject(ctx context.Context, id thread.ID) (string, error) {
	rec, err := p.store.Get(ctx, id)
	if err != nil {
		return "", err
	}
	found, err := p.resolver.Find(item.Directive, rec.Directive)
	if err != nil {
		return "", err
	}
	doc, err := found.Directive()
	if err != nil {
		return "", err
	}
	return prompt.Clean(doc), nil
}

// returned is what a thread has returned: its outputs, a line each, and its final text.
func (p *project) returned(ctx context.Context, id thread.ID) (remembered.Returned, error) {
	rec, err := p.store.Get(ctx, id)
	if errors.Is(err, thread.ErrNotFound) {
		err = p.control.Threads.NoThread(ctx, id)
	}
	if err != nil {
		return remembered.Returned{}, err
	}
	left := remembered.Returned{Writer: writerOf(rec), State: rec.Status}
	if rec.Outcome == nil {
		return left, nil
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(rec.Outcome.Outputs)) {
		if value := item.Text(rec.Outcome.Outputs[name]); value != "" {
			lines = append(lines, name+": "+value)
		}
	}
	if text := rec.Outcome.Result; text != "" && !saidBefore(lines, text) {
		lines = append(lines, text)
	}
	left.Text = strings.Join(lines, "\n")
	return left, nil
}

// saidBefore reports whether the final text only repeats the outputs.
func saidBefore(lines []string, text string) bool {
	var outputs map[string]any
	return len(lines) > 0 && (json.Unmarshal([]byte(text), &outputs) == nil || slices.ContainsFunc(lines, func(l string) bool { return strings.HasSuffix(l, ": "+text) }))
}

// connectMemory makes what is remembered go with its threads, be counted and be shrunk.
func (p *project) connectMemory() {
	p.control.Tidy.Belongings = append(p.control.Tidy.Belongings, tidy.Belonging{
		Name:  "what it noted in memory",
		Apart: true,
		Remove: func(ctx context.Context, rec thread.Record) error {
			book, unread, err := p.entriesOffOrOn()
			if err != nil {
				return err
			}
			return errors.Join(book.ForgetThread(ctx, rec.ThreadID), unread)
		},
		Count: func(ctx context.Context, ids []thread.ID) (int, error) {
			book, unread, err := p.entriesOffOrOn()
			if err != nil {
				return 0, err
			}
			n, err := book.OfThreads(ctx, ids)
			return n, errors.Join(err, unread)
		},
		Tell: func(n int) string { return fmt.Sprintf("%d %s of memory", n, verb(n, "entry", "entries")) },
	})
	p.control.Health.Places = append(p.control.Health.Places, health.Place{Name: "memory", Bytes: p.memoryBytes, SetAside: func() []string {
		set, _ := p.keptSettings() // rye-mcp doctor says what is wrong with them
		return p.memory.aside(set.Store)
	}})
}

// aside names the damaged indexes of the project that were set aside.
func (m *memory) aside(store string) (names []string) {
	home, err := m.homeOf(store, m.state.Find)
	if err != nil || home.Path == "" || !strings.HasPrefix(store, config.MemoryInState) {
		return nil
	}
	for _, path := range asideIn(filepath.Dir(home.Path)) {
		names = append(names, filepath.Base(path))
	}
	return names
}

// memoryBytes is the size of the project's memory file, with what lies beside it.
func (p *project) memoryBytes(context.Context) (sum int64, err error) {
	set, _ := p.keptSettings() // rye-mcp doctor says what is wrong with them
	home, err := p.memory.homeOf(set.Store, p.state.Find)
	if err != nil || home.Path == "" || !strings.HasPrefix(set.Store, config.MemoryInState) {
		return 0, err // a file that all projects share is not this one's
	}
	err = filepath.WalkDir(filepath.Dir(home.Path), func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && !d.Type().IsRegular() {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += info.Size()
		}
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	})
	return sum, err
}

// compactMemory makes the memory file as small as it can be, if there is one.
func (p *project) compactMemory(ctx context.Context) (store.Vacuumed, error) {
	set, _ := p.keptSettings()
	done, err := p.memory.index(set.Store).Compact(ctx)
	return store.Vacuumed{Name: "memory", Before: done.Before, After: done.After, Kept: done.Kept}, err
}

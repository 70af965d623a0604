package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/rag"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/tools/builtin/memory"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Index is what entries are kept in and found by.
type Index interface {
	// Store puts rows in, all or none; one of a key that there is replaces that.
	Store(ctx context.Context, rows []rag.Row) (rag.Stored, error)
	Query(ctx context.Context, q rag.Query) (rag.Answer, error)
	// List returns rows, the last one stored first.
	List(ctx context.Context, l rag.Listing) ([]rag.Listed, error)
	Delete(ctx context.Context, d rag.Deletion) (deleted int, err error)
}

// Embedded is a text as a model embeds it.
type Embedded struct {
	Model  string
	Vector []float32
}

// ErrNoEndpoint says that nobody embeds texts.
var ErrNoEndpoint = errors.New("there is no endpoint for embeddings")

// Settings bound what is recalled where a call does not say.
type Settings struct {
	Limit      int     // entries
	MinFloor   float64 // least similarity
	ScoreRatio float64 // of the best, that others must have
	MaxTokens  int
}

// Returned is what a thread that has ended left.
type Returned struct {
	memory.Writer
	State thread.State
	Text  string // outputs and final text
}

// Deps is what a Book works with.
type Deps struct {
	Index Index
	Seal  *place.Seal // nil: the project has no state of this user, and no entries
	// Make makes the state of a project that has none, for the first entry.
	Make    func() (*place.Seal, error)
	Project string // its folder
	// Embed embeds a text. Where it is nil, or there is no endpoint (ErrNoEndpoint), entries
	// are found by words alone.
	Embed func(ctx context.Context, text string) (Embedded, error)
	// Lock is had by one writer of the project at a time.
	Lock func(context.Context) (unlock func(), err error)
	// MayActOn refuses, with a fault, a thread that is not the caller or below it.
	MayActOn func(ctx context.Context, caller, id thread.ID) error
	// Returned tells what a thread returned.
	Returned func(context.Context, thread.ID) (Returned, error)
	Settings Settings
	Now      func() time.Time
}

// Book is the memory of one project. It implements [memory.Memory].
type Book struct{ Deps }

var _ memory.Memory = (*Book)(nil)

// New returns the memory of a project.
func New(d Deps) *Book { return &Book{d} }

// made is the book of a project that has state, which is made where there is none.
func (b *Book) made() (*Book, error) {
	if b.Seal != nil {
		return b, nil
	}
	seal, err := b.Make()
	if err != nil {
		return nil, err
	}
	with := *b
	with.Seal = seal
	return &with, nil
}

// pageSize is how many rows are read together.
const pageSize = 500

// each visits the entries of this project, or of all, that the seal vouches for, and
// counts the others.
func (b *Book) each(ctx context.Context, anywhere bool, visit func(kept) error) (refused int, err error) {
	if b.Seal == nil {
		return 0, nil
	}
	err = b.rows(ctx, rag.Listing{Namespace: Namespace, Project: b.scope(anywhere)}, func(r rag.Row) error {
		k, err := b.opened(r, anywhere)
		if err != nil {
			refused++
			return nil //nolint:nilerr // it is counted
		}
		return visit(k)
	})
	return refused, err
}

// rows visits rows, page by page.
func (b *Book) rows(ctx context.Context, l rag.Listing, visit func(rag.Row) error) error {
	for l.Limit = pageSize; ; {
		page, err := b.Index.List(ctx, l)
		if err != nil {
			return err
		}
		for _, r := range page {
			if err := visit(r.Row); err != nil {
				return err
			}
		}
		if len(page) < pageSize {
			return nil
		}
		l.After = page[len(page)-1].ID
	}
}

func (b *Book) scope(anywhere bool) string {
	if anywhere {
		return "*"
	}
	return b.Seal.Place()
}

// get returns one entry of this project.
func (b *Book) get(ctx context.Context, key string) (kept, error) {
	found, err := b.among(ctx, []string{key})
	if err != nil {
		return kept{}, err
	}
	if k, ok := found[key]; ok {
		return k, nil
	}
	return kept{}, noEntry(key)
}

// among returns those entries of this project that there are.
func (b *Book) among(ctx context.Context, keys []string) (map[string]kept, error) {
	found := map[string]kept{}
	if len(keys) == 0 || b.Seal == nil {
		return found, nil
	}
	err := b.rows(ctx, rag.Listing{Namespace: Namespace, Project: b.Seal.Place(), Keys: keys}, func(r rag.Row) error {
		if k, err := b.opened(r, false); err == nil {
			found[k.Key] = k
		}
		return nil
	})
	return found, err
}

func noEntry(key string) error {
	return tool.Faultf(tool.CodeNotFound, "no entry %.40q in this project", key).WithHint("%s names the keys.", memory.ListID).
		WithTry("rye-mcp memory list --history")
}

// List implements [memory.Memory]: the newest entries first.
func (b *Book) List(ctx context.Context, f memory.Filter) (memory.Listed, error) {
	var page memory.Listed
	wanted := wordsOf(f.Text)
	var err error
	page.Refused, err = b.each(ctx, f.Anywhere, func(k kept) error {
		if f.History || k.Current() {
			if matches(k.Entry, f.Kinds, wanted) {
				page.Entries = append(page.Entries, k.Entry)
			}
		}
		return nil
	})
	if err != nil {
		return memory.Listed{}, err
	}
	slices.SortStableFunc(page.Entries, func(a, b memory.Entry) int {
		return cmp.Or(b.Writer().At.Compare(a.Writer().At), strings.Compare(a.Key, b.Key))
	})
	if f.After != "" {
		i := slices.IndexFunc(page.Entries, func(e memory.Entry) bool { return e.Key == f.After })
		if i < 0 {
			return memory.Listed{}, noEntry(f.After)
		}
		page.Entries = page.Entries[i+1:]
	}
	if f.Limit > 0 && len(page.Entries) > f.Limit {
		page.Entries, page.More = page.Entries[:f.Limit], true
	}
	return page, nil
}

func matches(e memory.Entry, kinds []memory.Kind, wanted []string) bool {
	if len(kinds) > 0 && !slices.Contains(kinds, e.Kind) {
		return false
	}
	if len(wanted) == 0 {
		return true
	}
	text := strings.ToLower(words(e))
	return !slices.ContainsFunc(wanted, func(w string) bool { return !strings.Contains(text, w) })
}

// Get returns an entry by its key, or by how one alone begins.
func (b *Book) Get(ctx context.Context, key string) (memory.Entry, error) {
	k, err := b.get(ctx, key)
	if err == nil || !hexDigits(key) {
		return k.Entry, err
	}
	var begun []string
	var found memory.Entry
	if _, err := b.each(ctx, false, func(k kept) error {
		if strings.HasPrefix(k.Key, key) {
			begun, found = append(begun, k.Key), k.Entry
		}
		return nil
	}); err != nil {
		return memory.Entry{}, err
	}
	switch len(begun) {
	case 0:
		return memory.Entry{}, noEntry(key)
	case 1:
		return found, nil
	}
	return memory.Entry{}, tool.Faultf(tool.CodeAmbiguous, "%q begins the key of several entries", key).
		WithHint("one of %s", strings.Join(begun[:min(len(begun), 5)], ", "))
}

func hexDigits(key string) bool {
	return len(key) >= 4 && strings.Trim(key, "0123456789abcdef") == ""
}

// embed is the vector of a text. Without one, and where the endpoint fails, entries are
// found by words; the second says so.
func (b *Book) embed(ctx context.Context, text string) (Embedded, string) {
	if b.Embed == nil {
		return Embedded{}, ""
	}
	v, err := b.Embed(ctx, text)
	switch {
	case errors.Is(err, ErrNoEndpoint): // which is no fault: words alone count then
		return Embedded{}, ""
	case err != nil:
		return Embedded{}, fmt.Sprintf("no vector was made, so words alone count: %v", err)
	}
	return v, ""
}

package memory

import (
	"cmp"
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/runtime/rag"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/builtin/memory"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// IndexThread implements [memory.Memory]. A thread that is indexed again has its entry
// replaced; a thread that did not complete has none.
func (b *Book) IndexThread(ctx context.Context, by memory.Writer, id thread.ID) (memory.Wrote, error) {
	if by.By == memory.ByThread && by.Thread != id {
		if err := b.MayActOn(ctx, by.Thread, id); err != nil {
			return memory.Wrote{}, err
		}
	}
	b, err := b.made()
	if err != nil {
		return memory.Wrote{}, err
	}
	left, err := b.Returned(ctx, id)
	if err != nil {
		return memory.Wrote{}, err
	}
	if left.State != thread.Completed {
		return memory.Wrote{Note: fmt.Sprintf("thread %s is %s, and only what completed threads returned is noted", id, left.State)}, nil
	}
	e, removed := b.result(left)
	if e.Text == "" {
		return memory.Wrote{Note: fmt.Sprintf("thread %s returned nothing", id)}, nil
	}
	vector, note := b.embed(ctx, words(e.Entry))
	e.model, e.vector = vector.Model, vector.Vector
	unlock, err := b.Lock(ctx)
	if err != nil {
		return memory.Wrote{}, err
	}
	defer unlock()
	return memory.Wrote{Key: e.Key, Removed: removed, Note: note}, b.store(ctx, e)
}

// result is the entry of what a thread returned. Its key is made of the thread, so that
// there is one.
func (b *Book) result(left Returned) (kept, int) {
	text, inText := withoutSecrets(cleanText(left.Text), nil)
	if utf8.RuneCountInString(text) > MaxResult {
		text = clip(text, MaxResult-utf8.RuneCountInString(shortened)) + shortened
	}
	title, inTitle := withoutSecrets(cleanLine(fmt.Sprintf("%s: %s", left.Directive, cmp.Or(firstLine(text), "its result"))), nil)
	title = clip(title, MaxTitle)
	return kept{
		Entry: memory.Entry{
			Key: keyOf(b.Seal.Place(), memory.Result, string(left.Thread), "", 0), Kind: memory.Result, Title: title, Text: text, Project: b.Project,
			Origins: []memory.Origin{b.origin(left.Writer, "")},
		},
		place: b.Seal.Place(), chainRoot: string(left.ChainRoot),
	}, inTitle + inText
}

func firstLine(text string) string {
	for i, r := range text {
		if r == '\n' {
			return text[:i]
		}
	}
	return text
}

// Keep makes an entry a person's too: it stays when the thread that wrote it is deleted, and
// only a person changes it.
func (b *Book) Keep(ctx context.Context, key string) error {
	if b.Seal == nil {
		return noEntry(key)
	}
	unlock, err := b.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	k, err := b.get(ctx, key)
	if err != nil || !k.saidToo(b.origin(memory.Writer{By: memory.ByPerson}, "")) {
		return err
	}
	return b.store(ctx, k)
}

// Change is what a person changes of an entry; nil leaves it.
type Change struct {
	Kind  *memory.Kind
	Title *string
	Text  *string
}

// Edit changes an entry for a person, and signs it again. It keeps its key, and who said
// it.
func (b *Book) Edit(ctx context.Context, key string, c Change) (memory.Wrote, error) {
	was, err := b.get(ctx, key)
	if err != nil {
		return memory.Wrote{}, err
	}
	now, removed, err := b.changed(was, c)
	if err != nil {
		return memory.Wrote{}, err
	}
	vector, note := b.embed(ctx, words(now.Entry))
	unlock, err := b.Lock(ctx)
	if err != nil {
		return memory.Wrote{}, err
	}
	defer unlock()
	latest, err := b.get(ctx, key)
	if err != nil {
		return memory.Wrote{}, err
	}
	if words(latest.Entry) != words(was.Entry) {
		return memory.Wrote{}, tool.Faultf(tool.CodeConflict, "%s was changed by somebody else meanwhile", key).WithHint("look at it and edit it again")
	}
	latest.Kind, latest.Title, latest.Text, latest.EditedAt = now.Kind, now.Title, now.Text, now.EditedAt
	latest.model, latest.vector = vector.Model, vector.Vector
	return memory.Wrote{Key: key, Removed: removed, Note: note}, b.store(ctx, latest)
}

// changed is an entry with a change of it.
func (b *Book) changed(k kept, c Change) (kept, int, error) {
	n := memory.New{Kind: k.Kind, Title: k.Title, Text: k.Text}
	if c.Kind != nil {
		n.Kind = *c.Kind
	}
	if c.Title != nil {
		n.Title = *c.Title
	}
	if c.Text != nil {
		n.Text = *c.Text
	}
	if n.Kind != k.Kind || k.Kind != memory.Result {
		if err := kindOf(n.Kind); err != nil {
			return kept{}, 0, err
		}
	}
	title, text, removed, err := cleaned(n)
	if err != nil {
		return kept{}, 0, err
	}
	k.Kind, k.Title, k.Text, k.EditedAt = n.Kind, title, text, b.Now().UTC().Truncate(time.Millisecond)
	return k, removed, nil
}

// Damaged are the keys of the rows of this project that nobody vouches for.
func (b *Book) Damaged(ctx context.Context) (keys []string, err error) {
	if b.Seal == nil {
		return nil, nil
	}
	err = b.rows(ctx, rag.Listing{Namespace: Namespace, Project: b.Seal.Place()}, func(r rag.Row) error {
		if _, err := b.opened(r, false); err != nil {
			keys = append(keys, r.Key)
		}
		return nil
	})
	return keys, err
}

// ForgetDamaged removes those rows, and returns how many they were.
func (b *Book) ForgetDamaged(ctx context.Context) (int, error) {
	if b.Seal == nil {
		return 0, nil
	}
	unlock, err := b.Lock(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	keys, err := b.Damaged(ctx)
	if err != nil {
		return 0, err
	}
	return len(keys), b.delete(ctx, Namespace, keys...)
}

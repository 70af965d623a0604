package memory

import (
	"context"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/rag"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/builtin/memory"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Forget implements [memory.Memory]. An entry that others have said too stays, as theirs;
// a person takes all of it away.
func (b *Book) Forget(ctx context.Context, by memory.Writer, key string) (memory.Forgotten, error) {
	if b.Seal == nil {
		return memory.Forgotten{}, noEntry(key)
	}
	unlock, err := b.Lock(ctx)
	if err != nil {
		return memory.Forgotten{}, err
	}
	defer unlock()
	k, err := b.get(ctx, key)
	if err != nil {
		return memory.Forgotten{}, err
	}
	if by.By == memory.ByPerson {
		return b.remove(ctx, k)
	}
	if err := mayChange(by, k.Entry); err != nil {
		return memory.Forgotten{}, err
	}
	theirs, err := b.ofCaller(ctx, by, k.Entry)
	if err != nil {
		return memory.Forgotten{}, err
	}
	return b.withdraw(ctx, k, theirs)
}

// ofCaller tells which origins of an entry are the caller's to take back: a thread's own,
// and those of the threads below it; a client's are all. Without any that is refused.
func (b *Book) ofCaller(ctx context.Context, by memory.Writer, e memory.Entry) (func(memory.Origin) bool, error) {
	if by.By == memory.ByClient {
		return func(memory.Origin) bool { return true }, nil
	}
	own := map[thread.ID]bool{}
	for _, o := range e.Origins {
		if o.By != memory.ByThread {
			continue
		}
		if b.MayActOn(ctx, by.Thread, o.Thread) == nil {
			own[o.Thread] = true
		}
	}
	if len(own) == 0 {
		return nil, notYours(e.Key)
	}
	return func(o memory.Origin) bool { return o.By == memory.ByThread && own[o.Thread] }, nil
}

func notYours(key string) error {
	return tool.Faultf(tool.CodePermissionDenied, "%s was written neither by this thread nor by one below it", key).
		WithHint("Where it no longer holds, write what does with supersedes: [%s].", key)
}

// withdraw takes those away from an entry that say it no more. When nobody is left, it
// goes.
func (b *Book) withdraw(ctx context.Context, k kept, gone func(memory.Origin) bool) (memory.Forgotten, error) {
	left := slices.DeleteFunc(slices.Clone(k.Origins), gone)
	if len(left) == 0 {
		return b.remove(ctx, k)
	}
	if len(left) == len(k.Origins) {
		return memory.Forgotten{Key: k.Key, Others: len(left)}, nil
	}
	if left[0].Thread != k.Writer().Thread {
		k.chainRoot = "" // of the one who was first
	}
	before := k.Origins
	k.Origins = left
	if err := b.store(ctx, k); err != nil {
		return memory.Forgotten{}, err
	}
	// Those who said it again have rows of their own; the first of them is the writer now.
	stale := saidBy(k.Key, before, func(o memory.Origin) bool { return gone(o) || o == left[0] })
	return memory.Forgotten{Key: k.Key, Others: len(left)}, b.deleteSaid(ctx, stale)
}

// remove takes an entry away. Those that it superseded stand again, or are superseded
// by the one that superseded it.
func (b *Book) remove(ctx context.Context, k kept) (memory.Forgotten, error) {
	out := memory.Forgotten{Key: k.Key}
	before, err := b.among(ctx, k.Supersedes)
	if err != nil {
		return out, err
	}
	var changed []kept
	for _, old := range before {
		if old.SupersededBy != k.Key {
			continue
		}
		old.SupersededBy = k.SupersededBy
		if old.Current() {
			out.Revived = append(out.Revived, old.Key)
		}
		changed = append(changed, old)
	}
	if k.SupersededBy != "" && len(changed) > 0 {
		after, err := b.among(ctx, []string{k.SupersededBy})
		if err != nil {
			return out, err
		}
		if heir, ok := after[k.SupersededBy]; ok {
			for _, old := range changed {
				heir.Supersedes = append(heir.Supersedes, old.Key)
			}
			heir.Supersedes = heir.Supersedes[:min(len(heir.Supersedes), mostSuperseded)]
			changed = append(changed, heir)
		}
	}
	slices.Sort(out.Revived)
	if len(changed) > 0 {
		if err := b.store(ctx, changed...); err != nil {
			return out, err
		}
	}
	if err := b.delete(ctx, Namespace, k.Key); err != nil {
		return out, err
	}
	return out, b.deleteSaid(ctx, saidBy(k.Key, k.Origins, everybody))
}

func everybody(memory.Origin) bool { return true }

// saidBy are the keys of the rows of those who said an entry.
func saidBy(key string, origins []memory.Origin, which func(memory.Origin) bool) (keys []string) {
	for _, o := range origins {
		if o.Thread != "" && which(o) {
			keys = append(keys, saidKey(key, o.Thread))
		}
	}
	return keys
}

func (b *Book) deleteSaid(ctx context.Context, keys []string) error {
	return b.delete(ctx, SaidSpace, keys...)
}

func (b *Book) delete(ctx context.Context, namespace string, keys ...string) error {
	if len(keys) == 0 {
		return nil
	}
	_, err := b.Index.Delete(ctx, rag.Deletion{Namespace: namespace, Project: b.Seal.Place(), Keys: keys})
	return err
}

// OfThreads counts what some threads said.
func (b *Book) OfThreads(ctx context.Context, ids []thread.ID) (int, error) {
	keys, err := b.saidIn(ctx, ids)
	return len(keys), err
}

// saidIn are the keys of the entries that some threads said, each once.
func (b *Book) saidIn(ctx context.Context, ids []thread.ID) (keys []string, err error) {
	if b.Seal == nil {
		return nil, nil
	}
	for some := range slices.Chunk(ids, pageSize) {
		names := make([]string, len(some))
		for i, id := range some {
			names[i] = string(id)
		}
		for _, space := range []string{Namespace, SaidSpace} {
			err := b.rows(ctx, rag.Listing{Namespace: space, Project: b.Seal.Place(), ThreadIDs: names}, func(r rag.Row) error {
				key, _, _ := strings.Cut(r.Key, "/")
				keys = append(keys, key)
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys), nil
}

// ForgetThread takes away what a deleted thread said. Entries that others said too stay.
// It can be repeated.
func (b *Book) ForgetThread(ctx context.Context, id thread.ID) error {
	keys, err := b.saidIn(ctx, []thread.ID{id})
	if err != nil || len(keys) == 0 {
		return err
	}
	unlock, err := b.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	found, err := b.among(ctx, keys)
	if err != nil {
		return err
	}
	for _, key := range keys {
		k, ok := found[key]
		if !ok { // nobody vouches for it, or it is gone: the rows of the thread go all the same
			if err := b.removeRows(ctx, key, id); err != nil {
				return err
			}
			continue
		}
		if _, err := b.withdraw(ctx, k, func(o memory.Origin) bool { return o.Thread == id }); err != nil {
			return err
		}
		if err := b.deleteSaid(ctx, []string{saidKey(key, id)}); err != nil {
			return err
		}
	}
	return nil
}

// removeRows removes rows of a thread for which no entry stands.
func (b *Book) removeRows(ctx context.Context, key string, id thread.ID) error {
	rows, err := b.Index.List(ctx, rag.Listing{Namespace: Namespace, Project: b.Seal.Place(), Keys: []string{key}, ThreadIDs: []string{string(id)}})
	if err != nil {
		return err
	}
	if len(rows) > 0 {
		if err := b.delete(ctx, Namespace, key); err != nil {
			return err
		}
	}
	return b.deleteSaid(ctx, []string{saidKey(key, id)})
}

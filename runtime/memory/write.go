package memory

import (
	"context"
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/rag"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/builtin/memory"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Write implements [memory.Memory].
func (b *Book) Write(ctx context.Context, by memory.Writer, n memory.New) (memory.Wrote, error) {
	b, err := b.made()
	if err != nil {
		return memory.Wrote{}, err
	}
	e, removed, err := b.draft(by, n)
	if err != nil {
		return memory.Wrote{}, err
	}
	vector, note := b.embed(ctx, words(e.Entry)) // before the lock: it may take long
	e.model, e.vector = vector.Model, vector.Vector
	unlock, err := b.Lock(ctx)
	if err != nil {
		return memory.Wrote{}, err
	}
	defer unlock()
	old, err := b.replaced(ctx, by, n.Supersedes)
	if err != nil {
		return memory.Wrote{}, err
	}
	wrote, err := b.put(ctx, e, old)
	wrote.Removed = removed
	if wrote.Note == "" {
		wrote.Note = note
	}
	return wrote, err
}

// draft is an entry that is not written yet. It has no key.
func (b *Book) draft(by memory.Writer, n memory.New) (kept, int, error) {
	// A file that a person brings in may have what threads returned.
	if err := kindOf(n.Kind); err != nil && (n.Kind != memory.Result || n.From == "" || by.By != memory.ByPerson) {
		return kept{}, 0, err
	}
	if len(n.Supersedes) > maxSupersedes {
		return kept{}, 0, tool.Faultf(tool.CodeBadArguments, "an entry takes the place of at most %d others, and not of %d", maxSupersedes, len(n.Supersedes))
	}
	title, text, removed, err := cleaned(n)
	if err != nil {
		return kept{}, 0, err
	}
	return kept{
		Entry: memory.Entry{
			Kind: n.Kind, Title: title, Text: text, Project: b.Project,
			Origins: []memory.Origin{b.origin(by, n.From)},
		},
		place: b.Seal.Place(), chainRoot: string(by.ChainRoot),
	}, removed, nil
}

func (b *Book) origin(by memory.Writer, from string) memory.Origin {
	return memory.Origin{
		By: by.By, Thread: by.Thread, Directive: name(by.Directive), At: b.Now().UTC().Truncate(time.Millisecond), From: name(from),
	}
}

// replaced are the entries whose place a new one takes.
func (b *Book) replaced(ctx context.Context, by memory.Writer, keys []string) ([]kept, error) {
	found, err := b.among(ctx, keys)
	if err != nil {
		return nil, err
	}
	var old []kept
	for _, key := range slices.Compact(slices.Sorted(slices.Values(keys))) {
		k, ok := found[key]
		switch {
		case !ok:
			return nil, noEntry(key)
		case !k.Current():
			return nil, tool.Faultf(tool.CodeConflict, "%s was superseded before, by %s", key, k.SupersededBy).
				WithHint("Take the place of %s, if that no longer holds.", k.SupersededBy)
		case k.Kind == memory.Result:
			return nil, tool.Faultf(tool.CodeUnsupported, "%s is what a thread returned, and stays so", key)
		}
		if err := mayChange(by, k.Entry); err != nil {
			return nil, err
		}
		old = append(old, k)
	}
	return old, nil
}

// mayChange keeps everybody else from what a person wrote.
func mayChange(by memory.Writer, e memory.Entry) error {
	if by.By == memory.ByPerson || !slices.ContainsFunc(e.Origins, memory.Origin.OfPerson) {
		return nil
	}
	return tool.Faultf(tool.CodePermissionDenied, "%s was written by a person, who alone changes it", e.Key).
		WithHint("Write what you know as an entry of its own, and tell the person that the two differ.")
}

// put stores an entry in the place of others, or folds it into one that says the same. The
// caller has the lock.
func (b *Book) put(ctx context.Context, e kept, old []kept) (memory.Wrote, error) {
	alike, free, err := b.alike(ctx, e)
	if err != nil {
		return memory.Wrote{}, err
	}
	same, near, err := b.sameAs(ctx, e, alike, old)
	if err != nil {
		return memory.Wrote{}, err
	}
	if same != nil {
		return b.fold(ctx, e, *same, old)
	}
	if err := b.roomFor(ctx, e.Writer()); err != nil {
		return memory.Wrote{}, err
	}
	e.Key = free
	for _, k := range old {
		e.Supersedes = append(e.Supersedes, k.Key)
	}
	if err := b.store(ctx, append(supersededBy(old, e.Key), e)...); err != nil {
		return memory.Wrote{}, err
	}
	wrote := memory.Wrote{Key: e.Key, Superseded: e.Supersedes}
	if near != nil {
		wrote.Near = near.Key
	}
	return wrote, nil
}

// supersededBy are entries as history.
func supersededBy(old []kept, key string) []kept {
	all := slices.Clone(old)
	for i := range all {
		all[i].SupersededBy = key
	}
	return all
}

// alike are the entries, history too, whose keys are made of the same words as that of a new
// one, and the key that is free for it. An entry that nobody vouches for makes room.
func (b *Book) alike(ctx context.Context, e kept) (all []kept, free string, err error) {
	for {
		free = keyOf(e.place, e.Kind, e.Title, e.Text, len(all))
		found, err := b.among(ctx, []string{free})
		k, taken := found[free]
		if err != nil || !taken {
			return all, free, err
		}
		all = append(all, k)
	}
}

// roomFor refuses a thread that writes without end.
func (b *Book) roomFor(ctx context.Context, by memory.Origin) error {
	if by.Thread == "" {
		return nil
	}
	rows, err := b.Index.List(ctx, rag.Listing{Namespace: Namespace, Project: b.Seal.Place(), ThreadIDs: []string{string(by.Thread)}, Limit: maxOfThread})
	if err == nil && len(rows) >= maxOfThread {
		return tool.Faultf(tool.CodeUnsupported, "this thread has written %d entries, and more are not kept", maxOfThread).
			WithHint("Take the place of entries with supersedes, or forget some with %s.", memory.ForgetID)
	}
	return err
}

// fold adds to an entry who else says the same, and marks what the new one supersedes.
func (b *Book) fold(ctx context.Context, e, into kept, old []kept) (memory.Wrote, error) {
	wrote := memory.Wrote{
		Key: into.Key, Folded: true, Existing: into.Title + "\n" + into.Text,
		Note: "this stands already, and nothing was added; if yours says something else, write it with supersedes: [" + into.Key + "]",
	}
	if len(into.Supersedes)+len(old) > mostSuperseded {
		return memory.Wrote{}, tool.Faultf(tool.CodeConflict, "%s stands already, and has taken the place of %d entries", into.Key, len(into.Supersedes)).
			WithHint("Say what is new in a text of its own.")
	}
	changed := supersededBy(old, into.Key)
	for _, k := range old {
		into.Supersedes = append(into.Supersedes, k.Key)
		wrote.Superseded = append(wrote.Superseded, k.Key)
	}
	if !into.saidToo(e.Writer()) && len(old) == 0 {
		return wrote, nil
	}
	return wrote, b.store(ctx, append(changed, into)...)
}

// saidToo adds one who says the same, and reports whether that changes anything. A person
// is never left out, for others keep off what is a person's.
func (k *kept) saidToo(by memory.Origin) bool {
	known := slices.ContainsFunc(k.Origins, func(o memory.Origin) bool { return o.By == by.By && o.Thread == by.Thread })
	switch {
	case known && (!by.OfPerson() || slices.ContainsFunc(k.Origins, memory.Origin.OfPerson)):
		return false
	case len(k.Origins) < maxOrigins:
		k.Origins = append(slices.Clone(k.Origins), by)
	case by.OfPerson():
		k.Origins = append(slices.Clone(k.Origins[:maxOrigins-1]), by)
	default:
		return false
	}
	return true
}

// store writes entries, with a row for each further thread that said the same.
func (b *Book) store(ctx context.Context, entries ...kept) error {
	var rows []rag.Row
	for _, k := range entries {
		r, err := b.row(k)
		if err != nil {
			return err
		}
		rows = append(rows, r)
		for _, o := range k.Origins[1:] {
			if o.Thread != "" {
				rows = append(rows, b.saidRow(k, o))
			}
		}
	}
	_, err := b.Index.Store(ctx, rows)
	return err
}

// saidRow lets a deletion of a thread find what it said after others had.
func (b *Book) saidRow(k kept, o memory.Origin) rag.Row {
	return rag.Row{
		Namespace: SaidSpace, Key: saidKey(k.Key, o.Thread), Project: b.Seal.Place(), ThreadID: string(o.Thread), ChainRoot: k.chainRoot,
		Text: k.Key, Metadata: []byte("{}"), CreatedAt: o.At,
	}
}

func saidKey(key string, id thread.ID) string { return key + "/" + string(id) }

// nearest is how many entries are compared with a new one.
const nearest = 12

// sameAs finds the entry that says what a new one says, and otherwise one that is near: by
// words, or by vector. Those whose place the new one takes are not meant.
func (b *Book) sameAs(ctx context.Context, e kept, alike, but []kept) (same, near *kept, err error) {
	candidates, err := b.candidates(ctx, e, alike)
	if err != nil {
		return nil, nil, err
	}
	is := wordingOf(words(e.Entry))
	for _, c := range candidates {
		k := c.kept
		if !k.Current() || slices.ContainsFunc(but, func(o kept) bool { return o.Key == k.Key }) {
			continue
		}
		if k.Kind == memory.Result || e.Kind == memory.Result { // a result is the same to the letter, or another
			if sameLetters(k.Entry, e.Entry) {
				return &k, nil, nil
			}
			continue
		}
		if sameSaying(k.Entry, e.Entry) {
			return &k, nil, nil
		}
		if near == nil && (c.cosine >= nearMeaning || is.near(wordingOf(words(k.Entry)))) {
			near = &k
		}
	}
	return nil, near, nil
}

// sameLetters reports whether two entries are the same to the letter.
func sameLetters(a, b memory.Entry) bool {
	return a.Kind == b.Kind && a.Title == b.Title && a.Text == b.Text
}

// candidate is an entry that may say the same.
type candidate struct {
	kept
	cosine float64 // 0 where vectors were not compared
}

// candidates are the entries that are alike, and those nearest to a new one.
func (b *Book) candidates(ctx context.Context, e kept, alike []kept) ([]candidate, error) {
	answer, err := b.Index.Query(ctx, rag.Query{
		Namespace: Namespace, Text: words(e.Entry), Vector: e.vector, Model: e.model, Limit: nearest, MinFloor: -1, Project: e.place, Where: current(),
	})
	if err != nil {
		return nil, err
	}
	var keys []string
	cosines := map[string]float64{}
	for _, h := range answer.Hits {
		keys = append(keys, h.Key)
		if h.By != rag.ByText {
			cosines[h.Key] = h.Score
		}
	}
	found, err := b.among(ctx, keys)
	if err != nil {
		return nil, err
	}
	var all []candidate
	for _, k := range alike {
		all = append(all, candidate{k, cosines[k.Key]})
		delete(found, k.Key)
	}
	for _, key := range keys {
		if k, ok := found[key]; ok {
			all = append(all, candidate{k, cosines[key]})
		}
	}
	return all, nil
}

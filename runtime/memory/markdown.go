package memory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/tools/builtin/memory"
)

// Bounds of a file that is read.
const (
	MaxFile    = 32 << 20 // bytes
	maxEntries = 20_000
)

// note is what a file says of an entry beside its words, as JSON in a comment.
type note struct {
	Key          string    `json:"key,omitempty"`
	By           memory.By `json:"by,omitempty"`
	Thread       string    `json:"thread,omitempty"`
	Directive    string    `json:"directive,omitempty"`
	At           string    `json:"at,omitempty"`
	From         string    `json:"from,omitempty"`
	Supersedes   []string  `json:"supersedes,omitempty"`
	SupersededBy string    `json:"superseded_by,omitempty"`
}

// A line of a text that would begin an entry, or a note, has a backslash before it.
var escaped = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^(\\*)(## |<!-- \{)`) })

// WriteMarkdown writes entries as Markdown that [ParseMarkdown] reads.
func WriteMarkdown(w io.Writer, title string, entries []memory.Entry) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n", cleanLine(title))
	for _, e := range entries {
		if err := writeEntry(&b, e); err != nil {
			return err
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

func writeEntry(b *bytes.Buffer, e memory.Entry) error {
	by := e.Writer()
	about, err := json.Marshal(note{ // < and > are escaped in it, so that it cannot end the comment
		Key: e.Key, By: by.By, Thread: string(by.Thread), Directive: by.Directive, At: by.At.UTC().Format(time.RFC3339), From: by.From,
		Supersedes: e.Supersedes, SupersededBy: e.SupersededBy,
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "\n## %s: %s\n\n<!-- %s -->\n\n%s\n", e.Kind, e.Title, about, escaped().ReplaceAllString(e.Text, `\$1$2`))
	return nil
}

// Parsed is an entry of a file.
type Parsed struct {
	memory.Entry
	Line int // where it begins, from 1

	note note
}

// FileError says where a file is not what can be read.
type FileError struct {
	Line   int
	Reason string
}

func (e *FileError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// ParseMarkdown reads entries: each begins with "## kind: title". Text before the
// first is passed over. The error is a *FileError.
func ParseMarkdown(data []byte) ([]Parsed, error) {
	if len(data) > MaxFile {
		return nil, &FileError{1, fmt.Sprintf("the file has %d bytes; at most %d are read", len(data), MaxFile)}
	}
	var all []Parsed
	var text []string
	end := func() {
		if len(all) > 0 {
			all[len(all)-1].Text = cleanText(strings.Join(text, "\n"))
		}
		text = nil
	}
	for i, line := range strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n") {
		heading, begins := strings.CutPrefix(line, "## ")
		switch {
		case begins:
			end()
			p, err := parseHeading(heading, i+1)
			if err != nil {
				return nil, err
			}
			if all = append(all, p); len(all) > maxEntries {
				return nil, &FileError{i + 1, fmt.Sprintf("there are more than %d entries", maxEntries)}
			}
		case len(all) == 0:
		case strings.HasPrefix(line, "<!-- {"):
			if err := all[len(all)-1].parseNote(line, i+1); err != nil {
				return nil, err
			}
		default:
			if escaped().MatchString(line) {
				line = strings.TrimPrefix(line, `\`)
			}
			text = append(text, line)
		}
	}
	end()
	return all, nil
}

func parseHeading(heading string, line int) (Parsed, error) {
	kind, title, found := strings.Cut(heading, ": ")
	k := memory.Kind(strings.ToLower(strings.TrimSpace(kind)))
	if !found || !slices.Contains(memory.Kinds(), k) {
		return Parsed{}, &FileError{line, fmt.Sprintf("%.60q is no entry; write \"## kind: title\" with a kind of %s", heading, names(memory.Kinds()))}
	}
	return Parsed{Entry: memory.Entry{Kind: k, Title: cleanLine(title)}, Line: line}, nil
}

func (p *Parsed) parseNote(line string, at int) error {
	text, ended := strings.CutSuffix(strings.TrimRight(line, " \t"), "-->")
	if !ended {
		return &FileError{at, "the comment does not end on its line"}
	}
	if p.note.Key != "" {
		return &FileError{at, "the entry has two comments about it"}
	}
	dec := json.NewDecoder(strings.NewReader(strings.TrimPrefix(text, "<!-- ")))
	if err := dec.Decode(&p.note); err != nil {
		return &FileError{at, "the comment is no JSON of an entry"}
	}
	p.Key, p.Supersedes, p.SupersededBy = p.note.Key, p.note.Supersedes, p.note.SupersededBy
	return nil
}

// Brought says what became of the entries of a file.
type Brought struct {
	Added     int `json:"added"`
	Changed   int `json:"changed"`
	Unchanged int `json:"unchanged"`
	Folded    int `json:"folded"` // into entries that said the same
	Removed   int `json:"secrets_removed,omitempty"`
}

// Bring takes the entries of a file in, for a person: one whose key is here is changed to
// what the file says, the others are written, superseding what the file says they do.
func (b *Book) Bring(ctx context.Context, entries []Parsed) (Brought, error) {
	r := reading{b, map[string]string{}, map[string]bool{}, Brought{}}
	for _, p := range olderFirst(entries) {
		if err := r.bring(ctx, p); err != nil {
			return r.done, fmt.Errorf("line %d: %w", p.Line, err)
		}
	}
	return r.done, nil
}

// reading is how far a file is brought in.
type reading struct {
	*Book

	keys map[string]string // in the file → here
	met  map[string]bool   // keys here of entries that the file has
	done Brought
}

// olderFirst puts entries behind those whose place they take.
func olderFirst(entries []Parsed) []Parsed {
	at := map[string]int{}
	for i, p := range entries {
		at[p.Key] = i
	}
	ordered, seen := make([]Parsed, 0, len(entries)), make([]bool, len(entries))
	var visit func(i int)
	visit = func(i int) {
		if seen[i] {
			return
		}
		seen[i] = true
		for _, key := range entries[i].Supersedes {
			if older, ok := at[key]; ok && key != "" {
				visit(older)
			}
		}
		ordered = append(ordered, entries[i])
	}
	for i := range entries {
		visit(i)
	}
	return ordered
}

func (r *reading) bring(ctx context.Context, p Parsed) error {
	here, err := r.among(ctx, []string{p.Key})
	if err != nil {
		return err
	}
	if k, ok := here[p.Key]; ok {
		r.keys[p.Key], r.met[p.Key] = p.Key, true
		return r.change(ctx, k, p)
	}
	n := memory.New{Kind: p.Kind, Title: p.Title, Text: p.Text, From: p.source()}
	if p.SupersededBy != "" {
		switch key, err := r.historyOf(ctx, n); {
		case err != nil:
			return err
		case key != "": // written, it would hold, for its successor to supersede again
			r.met[key] = true
			r.done.Folded++
			return nil
		}
	}
	for _, key := range p.Supersedes {
		if now, ok := r.keys[key]; ok {
			n.Supersedes = append(n.Supersedes, now)
		}
	}
	wrote, err := r.Write(ctx, memory.Writer{By: memory.ByPerson}, n)
	if err != nil {
		return err
	}
	if r.keys[p.Key], r.met[wrote.Key] = wrote.Key, true; wrote.Folded {
		r.done.Folded++
	} else {
		r.done.Added++
	}
	r.done.Removed += wrote.Removed
	return nil
}

// change makes an entry what the file says of it.
func (r *reading) change(ctx context.Context, k kept, p Parsed) error {
	if k.Kind == p.Kind && k.Title == p.Title && k.Text == p.Text {
		r.done.Unchanged++
		return nil
	}
	wrote, err := r.Edit(ctx, p.Key, Change{Kind: &p.Kind, Title: &p.Title, Text: &p.Text})
	r.done.Changed++
	r.done.Removed += wrote.Removed
	return err
}

// historyOf is the key of an entry that is history here and has the words of a new one, and that
// the file has not had yet; empty: there is none.
func (r *reading) historyOf(ctx context.Context, n memory.New) (string, error) {
	if r.Seal == nil {
		return "", nil
	}
	e, _, err := r.draft(memory.Writer{By: memory.ByPerson}, n)
	if err != nil {
		return "", err
	}
	alike, _, err := r.alike(ctx, e)
	for _, k := range alike {
		if !k.Current() && !r.met[k.Key] && sameLetters(k.Entry, e.Entry) {
			return k.Key, err
		}
	}
	return "", err
}

// source is whom a file names as the writer; empty for what has none, which is the
// person's own.
func (p Parsed) source() string {
	n := p.note
	if n.By == "" && n.From == "" {
		return ""
	}
	return cmp.Or(n.From, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", n.By, n.Thread, n.Directive, n.At)))
}

// Export returns all entries with their history, oldest first, so that what is superseded
// stands before what supersedes it.
func (b *Book) Export(ctx context.Context, kinds []memory.Kind) (memory.Listed, error) {
	if b.Seal == nil {
		return memory.Listed{}, nil
	}
	unlock, err := b.Lock(ctx)
	if err != nil {
		return memory.Listed{}, err
	}
	defer unlock()
	all, err := b.List(ctx, memory.Filter{Kinds: kinds, History: true})
	slices.Reverse(all.Entries)
	return all, err
}

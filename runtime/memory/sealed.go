package memory

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/rag"
	"github.com/rye-mcp/rye-mcp/tools/builtin/memory"
)

// Namespaces of the index. This package alone writes those that begin with "rye.".
const (
	Namespace = "rye.memory"
	// SaidSpace has a row for each thread but the writer that said what an entry says, so
	// that its deletion finds it.
	SaidSpace = "rye.memory.said"
)

// documentType is what a signed entry says it is.
const documentType = "rye-memory-entry"

// States of an entry, by which the index leaves out what is history.
const (
	stateCurrent    = "current"
	stateSuperseded = "superseded"
)

// current selects what is not history.
func current() rag.Where { return rag.Where{"state": {stateCurrent}} }

// document is an entry as it is signed.
type document struct {
	Type         string          `json:"type"`
	Place        string          `json:"place"`
	Key          string          `json:"key"`
	Kind         memory.Kind     `json:"kind"`
	State        string          `json:"state"`
	Title        string          `json:"title"`
	Text         string          `json:"text"`
	Origins      []memory.Origin `json:"origins"`
	Supersedes   []string        `json:"supersedes,omitempty"`
	SupersededBy string          `json:"superseded_by,omitempty"`
	Project      string          `json:"project"`
	ChainRoot    string          `json:"chain_root,omitempty"`
	EditedAt     time.Time       `json:"edited_at,omitzero"`
}

// errNotOurs says that a row is not an entry that this user has signed for this place.
var errNotOurs = errors.New("not an entry that was signed here")

// kept is an entry with what the index has beside it.
type kept struct {
	memory.Entry
	place     string
	chainRoot string
	// vector of a new text; without one, that of the same text stays.
	model  string
	vector []float32
}

// words are what an entry is found by.
func words(e memory.Entry) string { return e.Title + "\n" + e.Text }

// row is an entry as the index keeps it.
func (b *Book) row(k kept) (rag.Row, error) {
	state := stateCurrent
	if !k.Current() {
		state = stateSuperseded
	}
	doc, err := b.Seal.Encode(document{
		Type: documentType, Place: b.Seal.Place(), Key: k.Key, Kind: k.Kind, State: state, Title: k.Title, Text: k.Text, Origins: k.Origins,
		Supersedes: k.Supersedes, SupersededBy: k.SupersededBy, Project: k.Project, ChainRoot: k.chainRoot, EditedAt: k.EditedAt,
	})
	if err != nil {
		return rag.Row{}, fmt.Errorf("sign entry %s: %w", k.Key, err)
	}
	return rag.Row{
		Namespace: Namespace, Key: k.Key, Project: b.Seal.Place(), ThreadID: string(k.Writer().Thread), ChainRoot: k.chainRoot, Text: words(k.Entry),
		Metadata: doc, Model: k.model, Vector: k.vector, CreatedAt: k.Writer().At,
	}, nil
}

// opened is the entry that a row carries, where the seal vouches for it. Anywhere takes
// those that the user's own state key has signed for other places.
func (b *Book) opened(r rag.Row, anywhere bool) (kept, error) {
	var doc document
	at, err := b.Seal.Open(r.Metadata, &doc)
	if err == nil && doc.Place != at && (!anywhere || !b.Seal.Own(r.Metadata)) {
		err = fmt.Errorf("%w: of another place", errNotOurs)
	}
	if err == nil && (doc.Type != documentType || doc.Key != r.Key || doc.Place != r.Project || !doc.plausible()) {
		err = errNotOurs
	}
	if err != nil {
		return kept{}, fmt.Errorf("entry %.32q: %w", r.Key, err)
	}
	e := memory.Entry{
		Key: doc.Key, Kind: doc.Kind, Title: doc.Title, Text: doc.Text, Origins: doc.Origins, Supersedes: doc.Supersedes,
		SupersededBy: doc.SupersededBy, Project: doc.Project, EditedAt: doc.EditedAt,
	}
	if r.Text != words(e) {
		return kept{}, fmt.Errorf("entry %s: %w: it is found by other words", r.Key, errNotOurs)
	}
	return kept{Entry: e, place: doc.Place, chainRoot: doc.ChainRoot}, nil
}

// plausible reports whether a document is one that this version could have signed. State
// and rows of an adopted key are somebody else's.
func (d document) plausible() bool {
	return slices.Contains(memory.Kinds(), d.Kind) && len(d.Origins) > 0 && len(d.Origins) <= maxOrigins && d.Title == cleanLine(d.Title) &&
		d.Text == cleanText(d.Text) && (d.State == stateCurrent) == (d.SupersededBy == "")
}

// keyOf makes the key of an entry of its content, so that the same content has the same
// key. Again counts the entries of another content that have it already.
func keyOf(place string, kind memory.Kind, title, text string, again int) string {
	sum := sha256.New()
	for _, part := range []string{place, string(kind), normal(title), normal(text)} {
		_, _ = fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	if again > 0 {
		_, _ = fmt.Fprintf(sum, "%d", again)
	}
	return hex.EncodeToString(sum.Sum(nil)[:keyBytes])
}

const keyBytes = 8

// normal are the words of a text that its key is made of. Texts that say something else can
// have the same.
func normal(text string) string { return strings.Join(wordsOf(text), " ") }

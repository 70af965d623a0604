package rag

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Bounds of what is stored. They are far above what is useful in a prompt.
const (
	MaxText      = 64 << 10 // bytes; an embedding model reads about half of that
	MaxMetadata  = 16 << 10 // bytes of JSON
	MaxName      = 512      // bytes of a namespace, a key, a project, a thread id, a model
	MaxLimit     = 200      // hits of a query
	DefaultLimit = 5
	// AllProjects is the project of a query that asks all of them.
	AllProjects = "*"
)

// bytesPerToken makes an estimate of tokens from bytes, as for the rest of a prompt.
const bytesPerToken = 4

// Row is one text of a namespace. Its key is unique within namespace and project.
type Row struct {
	Namespace, Key, Project string
	// ThreadID and ChainRoot are of the thread that it came from; empty for none.
	ThreadID, ChainRoot string
	Text                string
	Metadata            json.RawMessage // a JSON object; empty means {}
	// Model has made Vector, of so many dimensions. A row without a vector is found by its
	// words. One that replaces a row of the same text keeps the vector of that.
	Model     string
	Dimension int // 0: that of Vector
	Vector    []float32
	CreatedAt time.Time
}

// Query asks one namespace.
type Query struct {
	Namespace string
	Text      string    // any text; its words are looked for, whatever else stands in it
	Vector    []float32 // made by Model from Text
	Model     string
	Limit     int     // hits at most; 0 means DefaultLimit
	MinFloor  float64 // the least cosine
	// ScoreRatio is the share of the best score that a hit must reach.
	ScoreRatio float64
	MaxTokens  int    // of all texts together, at 4 bytes a token; 0 means no bound
	Project    string // AllProjects means all
	// ExcludeThread leaves out the rows of a thread and of the chain it belongs to.
	// ExcludeChain is the root of that where it is known; else rows of the thread say it.
	ExcludeThread, ExcludeChain string
	Where                       Where
}

// Where selects rows by their metadata: each field that is named, of text, must have one of
// the values.
type Where map[string][]string

// Hit is a row that was found.
type Hit struct {
	Namespace, Key, Project string
	// Score is the cosine where vectors were compared, else the share of the best BM25.
	Score               float64
	By                  Method
	Text                string
	Truncated           bool // Text is the beginning, with a mark at its end
	Metadata            json.RawMessage
	ThreadID, ChainRoot string
	CreatedAt           time.Time
}

// Method is how something was found.
type Method string

// The methods of a hit and of an answer.
const (
	ByText    Method = "text"    // words
	ByVectors Method = "vectors" // cosine
	ByBoth    Method = "both"
	ByNothing Method = "nothing" // there was nothing to ask
)

// Answer is what a query has found, the best first.
type Answer struct {
	Hits []Hit
	By   Method // how it was looked for
	Rows int    // of the namespace and the projects asked
	// OtherModel counts rows whose vectors were left out, since another model has made
	// them or they have another dimension; NoVector counts those that have none. Both are 0
	// for a query without a vector.
	OtherModel, NoVector int
}

// Stored says what became of rows.
type Stored struct {
	Added, Replaced int
}

// Deletion says what is deleted: rows that match everything that is set. One of Keys,
// ThreadIDs and All is needed.
type Deletion struct {
	Namespace string // empty: any, with ThreadIDs
	Project   string // AllProjects means all
	Keys      []string
	ThreadIDs []string
	All       bool // the whole namespace, or one project of it
}

// ErrClosed says that an index is used after Close.
var ErrClosed = errors.New("the index is closed")

// InputError says which part of a call is not accepted, and what is.
type InputError struct {
	Field, Reason string
}

func (e *InputError) Error() string { return e.Field + ": " + e.Reason }

func refuse(field, format string, args ...any) error {
	return &InputError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// DamageError says that the file is damaged, or is not the one that was made here.
type DamageError struct {
	Path string
	Err  error
}

func (e *DamageError) Error() string {
	if errors.Is(e.Err, ErrForeign) {
		return e.Path + " is a file of something else, and was left as it is; name another one, or move it away"
	}
	return fmt.Sprintf("%s is damaged: %v", e.Path, e.Err)
}

func (e *DamageError) Unwrap() error { return e.Err }

// ErrForeign says that a file lacks the mark of its place.
var ErrForeign = errors.New("it is not the index that was made here")

// ErrTooNew says that a newer version of this program has made the file.
var ErrTooNew = errors.New("the index was made by a newer version of rye-mcp")

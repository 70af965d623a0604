package eval

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/runtime/rag"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Bounds of a set.
const (
	MaxLine      = 1 << 20 // bytes
	MaxDocuments = 200_000
	MaxQuestions = 50_000
	MaxEvidence  = 100
	maxQuestion  = 16 << 10 // bytes
)

// Read reads a set of JSON lines: a document is {"id": …, "text": …}, a question
// {"question": …, "evidence": [ids]}, in any order. Each line has its fields once, in this
// spelling, and no others; empty lines are passed over. The error is a [*LineError], or
// wraps [ErrEmpty].
func Read(from io.Reader) (Set, error) {
	r := reader{asked: map[int]int{}, known: map[string]bool{}}
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 0, 64<<10), MaxLine)
	for lines.Scan() {
		r.line++
		if err := r.add(bytes.TrimSpace(lines.Bytes())); err != nil {
			return Set{}, err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return Set{}, &LineError{Line: r.line + 1, Reason: fmt.Sprintf("it has more than %d bytes", MaxLine)}
	}
	if lines.Err() != nil {
		return Set{}, lines.Err()
	}
	return r.set, r.check()
}

// reader is a set while it is read.
type reader struct {
	set   Set
	line  int
	asked map[int]int // the line of a question, by its place
	known map[string]bool
}

func (r *reader) wrong(format string, args ...any) error {
	return &LineError{Line: r.line, Reason: fmt.Sprintf(format, args...)}
}

// add adds a line.
func (r *reader) add(line []byte) error {
	if len(line) == 0 {
		return nil
	}
	if !utf8.Valid(line) {
		return r.wrong("it is no UTF-8 text")
	}
	fields, err := fieldsOf(line)
	if err != nil {
		return r.wrong("%v", err)
	}
	_, isDocument := fields["text"]
	_, isQuestion := fields["question"]
	switch {
	case isDocument && isQuestion:
		return r.wrong(`it has "text" and "question"; want one of them`)
	case isDocument:
		return r.document(fields)
	case isQuestion:
		return r.question(fields)
	}
	return r.wrong(`it has neither "text" nor "question"`)
}

func (r *reader) document(fields map[string]json.RawMessage) error {
	var d Document
	if err := r.decode(fields, map[string]any{"id": &d.ID, "text": &d.Text}); err != nil {
		return err
	}
	switch {
	case d.ID == "" || len(d.ID) > rag.MaxName || strings.ContainsFunc(d.ID, unicode.IsControl):
		return r.wrong("id: want text of one line, of 1 to %d bytes", rag.MaxName)
	case r.known[d.ID]:
		return r.wrong("id: %q stands on an earlier line", d.ID)
	case strings.TrimSpace(d.Text) == "" || len(d.Text) > rag.MaxText || strings.ContainsRune(d.Text, 0):
		return r.wrong("text: want 1 to %d bytes of text; a longer document is several", rag.MaxText)
	case len(r.set.Documents) == MaxDocuments:
		return r.wrong("there are more than %d documents", MaxDocuments)
	}
	r.known[d.ID] = true
	r.set.Documents = append(r.set.Documents, d)
	return nil
}

func (r *reader) question(fields map[string]json.RawMessage) error {
	var q Question
	if err := r.decode(fields, map[string]any{"question": &q.Text, "evidence": &q.Evidence}); err != nil {
		return err
	}
	switch {
	case strings.TrimSpace(q.Text) == "" || len(q.Text) > maxQuestion || strings.ContainsRune(q.Text, 0):
		return r.wrong("question: want 1 to %d bytes of text", maxQuestion)
	case q.Evidence == nil:
		return r.wrong("evidence: want a list of ids; an empty one where nothing answers")
	case len(q.Evidence) > MaxEvidence:
		return r.wrong("evidence: want at most %d ids", MaxEvidence)
	case len(r.set.Questions) == MaxQuestions:
		return r.wrong("there are more than %d questions", MaxQuestions)
	}
	for i, id := range q.Evidence {
		if slices.Contains(q.Evidence[:i], id) {
			return r.wrong("evidence: %q stands twice", id)
		}
	}
	r.asked[len(r.set.Questions)] = r.line
	r.set.Questions = append(r.set.Questions, q)
	return nil
}

// decode reads the fields of a line, all of which must be there.
func (r *reader) decode(fields map[string]json.RawMessage, into map[string]any) error {
	for name := range fields {
		if into[name] == nil {
			return r.wrong("field %q is unknown", name)
		}
	}
	for name, to := range into {
		if fields[name] == nil {
			return r.wrong("%s: missing", name)
		}
		if err := json.Unmarshal(fields[name], to); err != nil || string(fields[name]) == "null" {
			return r.wrong("%s: %s is of the wrong type", name, cut(string(fields[name])))
		}
	}
	return nil
}

// cut is the beginning of what a person has written.
func cut(s string) string { return item.Clip(s, 40) }

// fieldsOf are the fields of an object that is alone on its line, none twice.
func fieldsOf(line []byte) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(line))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("it is no JSON object")
	}
	fields := map[string]json.RawMessage{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, errors.New("it is no JSON object")
		}
		key, _ := name.(string) // a key of an object is nothing else
		if _, twice := fields[key]; twice {
			return nil, fmt.Errorf("field %q stands twice", cut(key))
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, fmt.Errorf("%s: it is no JSON", cut(key))
		}
		fields[key] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, errors.New("the JSON object does not end")
	}
	if d.More() || d.InputOffset() != int64(len(line)) {
		return nil, errors.New("something follows the JSON object")
	}
	return fields, nil
}

// check looks at what only the whole set can tell.
func (r *reader) check() error {
	if len(r.set.Documents) == 0 || len(r.set.Questions) == 0 {
		return fmt.Errorf("%w: it has %d and %d", ErrEmpty, len(r.set.Documents), len(r.set.Questions))
	}
	for i, q := range r.set.Questions {
		for _, id := range q.Evidence {
			if !r.known[id] {
				return &LineError{Line: r.asked[i], Reason: fmt.Sprintf("evidence: no document has the id %q", cut(id))}
			}
		}
	}
	return nil
}

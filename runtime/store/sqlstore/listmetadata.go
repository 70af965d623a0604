package sqlstore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// maxAsked is how many members of metadata a filter may name, objects too.
const maxAsked = 20

// addMetadata adds the condition that metadata contain an object.
func (l *listing) addMetadata() error {
	if len(l.filter.Metadata) == 0 {
		return nil
	}
	asked, err := thread.ParseMetadata(l.filter.Metadata) // bounds it, and checks the names
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(asked))
	dec.UseNumber()
	var object map[string]any
	if err := dec.Decode(&object); err != nil {
		return err
	}
	before := len(l.conditions)
	if fork, named := object[thread.MetadataForkedFrom].(string); named {
		source := l.dialect.forkedFrom()
		l.add("threads_forks", source+" IS NOT NULL AND "+source+" = ?", fork)
		delete(object, thread.MetadataForkedFrom)
	}
	l.contains(nil, object)
	if asked := len(l.conditions) - before; asked > maxAsked {
		return &thread.LabelError{Text: fmt.Sprintf("%d members of metadata are asked for; at most %d are valid", asked, maxAsked)}
	}
	if l.labelled {
		l.add("threads_labelled", "metadata <> '{}'")
	}
	return nil
}

// contains adds what an object at a path must have.
func (l *listing) contains(path []string, object map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		at := append(slices.Clone(path), name)
		value := object[name]
		l.labelled = l.labelled || value != nil
		below, isObject := value.(map[string]any)
		if !isObject || len(below) == 0 {
			sql, args := l.dialect.hasMember(at, value)
			l.add("", sql, args...)
		}
		l.contains(at, below)
	}
}

// asKept writes a value as it stands in metadata.
func asKept(value any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		panic("bug; what was decoded encodes: " + err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

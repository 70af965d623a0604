package parse

import (
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// mapping is a YAML mapping with its merge keys resolved.
type mapping struct {
	src    *source
	values map[string]any        // nil, bool, int64, float64, string, []any, map[string]any
	nodes  map[string]*yaml.Node // the value of each key, for its line and text
}

// yamlMapping reads the one document in text, which starts on the given line of
// the file. It returns an empty mapping for an empty document, and nil for
// something else than a mapping.
func (s *source) yamlMapping(text string, line int) (*mapping, error) {
	m := &mapping{src: s, values: make(map[string]any), nodes: make(map[string]*yaml.Node)}
	root, err := s.yamlRoot(text, line)
	if err != nil || root == nil {
		return m, err
	}
	if resolved(root).Kind != yaml.MappingNode {
		return nil, nil
	}
	r := yamlReader{src: s}
	entries, err := r.entries(resolved(root), 0)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		m.nodes[e.key] = resolved(e.value)
		if m.values[e.key], err = r.value(e.value, 1); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// yamlRoot parses text into nodes, whose lines are lines of the file.
func (s *source) yamlRoot(text string, line int) (*yaml.Node, error) {
	// Empty lines in front make the parser count as the file does.
	dec := yaml.NewDecoder(io.MultiReader(
		strings.NewReader(strings.Repeat("\n", line-1)), strings.NewReader(text)))
	var doc, next yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, s.yamlError(err, text, line)
	}
	switch err := dec.Decode(&next); {
	case err == nil:
		return nil, s.errorf(next.Line, "a second YAML document starts here; an item has one")
	case !errors.Is(err, io.EOF):
		return nil, s.yamlError(err, text, line)
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	return doc.Content[0], nil
}

// yamlProblem matches the errors of yaml.v3 that name a line.
var yamlProblem = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)^yaml: line (\d+): (.*)$`) })

// yamlError gives an error of yaml.v3 in text, which starts on line, its line in
// the file. The library counts from 1 in the errors of its scanner but from 0
// in those of its grammar, and puts the end of the text on a line of its own.
func (s *source) yamlError(err error, text string, line int) error {
	last := line + strings.Count(text, "\n")
	reason := strings.TrimPrefix(err.Error(), "yaml: ")
	if m := yamlProblem().FindStringSubmatch(err.Error()); m != nil {
		line, _ = strconv.Atoi(m[1])
		reason = m[2]
		switch reason {
		case "did not find expected key", "did not find expected node content",
			"did not find expected '-' indicator", "did not find expected <document start>",
			"did not find expected ',' or ']'", "did not find expected ',' or '}'":
			line++
		}
	}
	return s.errorf(min(line, last), "YAML: %s", said(item.ShownIn(reason)))
}

// text returns the first of keys that is there, as it is written: a version
// 1.0 stays "1.0".
func (m *mapping) text(keys ...string) (string, error) {
	for _, key := range keys {
		n, ok := m.nodes[key]
		switch {
		case !ok:
			continue
		case n.Kind != yaml.ScalarNode:
			return "", m.src.errorf(n.Line, "%s must be text", key)
		case n.ShortTag() == "!!null":
			return "", nil
		}
		return strings.TrimSpace(n.Value), nil
	}
	return "", nil
}

// list returns the texts of a list. A text where a list is expected counts as
// one, its items separated by commas. Items that are no text stay behind in
// the metadata.
func (m *mapping) list(key string) []string {
	n, ok := m.nodes[key]
	if !ok {
		return nil
	}
	var items []string
	if n.Kind == yaml.ScalarNode && n.ShortTag() != "!!null" {
		items = strings.Split(n.Value, ",")
	}
	if n.Kind == yaml.SequenceNode {
		for _, c := range n.Content {
			if c = resolved(c); c.Kind == yaml.ScalarNode {
				items = append(items, c.Value)
			}
		}
	}
	var out []string
	for _, s := range items {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

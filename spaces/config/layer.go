package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// layer is one settings file of one space.
type layer struct {
	path   string
	file   string // below .ai/config
	source []byte
	root   *yaml.Node     // the top-level mapping; nil when the file says nothing
	values map[string]any // JSON types, without keys that have no value
	space  item.Space
	// spellings are the other places in the file where the value at a path of
	// keys in values may stand; nil when there are none.
	spellings func(at []string) [][]string
}

// parseLayer reads a settings file: one YAML document, a mapping at its top.
func parseLayer(path string, data []byte) (layer, error) {
	l := layer{path: path, source: data, values: map[string]any{}}
	if at := badText(data); at >= 0 {
		line := 1 + bytes.Count(data[:at], []byte("\n"))
		return l, &Error{Path: path, Line: line, Reason: "not UTF-8 text, or a control character in it"}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return l, nil
	case err != nil:
		return l, yamlError(path, err)
	}
	var next yaml.Node
	switch err := decoder.Decode(&next); {
	case err == nil:
		return l, &Error{Path: path, Line: next.Line, Reason: "a second YAML document begins here; want one"}
	case !errors.Is(err, io.EOF):
		return l, yamlError(path, err)
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null" {
		return l, nil
	}
	if root.Kind != yaml.MappingNode {
		return l, &Error{Path: path, Line: root.Line, Reason: "want a mapping of keys to values"}
	}
	if err := checkWeight(path, root); err != nil {
		return l, err
	}
	l.root = root
	var values any
	if err := root.Decode(&values); err != nil {
		return l, yamlError(path, err)
	}
	plain, err := l.plain(values, nil)
	if err != nil {
		return l, err
	}
	l.values = plain.(map[string]any)
	return l, nil
}

// badText is the offset of the first byte that YAML text must not have, or -1.
func badText(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 || r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f {
			return i
		}
		i += size
	}
	return -1
}

// lineInMessage finds the line in an error of the YAML library, which has no
// field for it.
var lineInMessage = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)^(?:yaml: )?line (\d+): (.*)$`) })

// grammarFault recognises the errors in which the library counts lines from 0:
// those of its parser, where those of its scanner count from 1.
var grammarFault = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^did not find expected (?:<document start>|key|node content|'-' indicator|',' or '[]}]')$`)
})

func yamlError(path string, err error) error {
	reason := err.Error()
	var mismatch *yaml.TypeError
	if errors.As(err, &mismatch) && len(mismatch.Errors) > 0 {
		reason = mismatch.Errors[0]
	}
	line := 1 // the library leaves the line out when it is the first
	if m := lineInMessage().FindStringSubmatch(reason); m != nil {
		reason = m[2]
		if n, err := strconv.Atoi(m[1]); err == nil {
			line = n
		}
		if grammarFault().MatchString(reason) {
			line++
		}
	}
	return &Error{Path: path, Line: line, Reason: "malformed YAML: " + item.ShownIn(strings.TrimPrefix(reason, "yaml: "))}
}

// plain turns what YAML decodes to into the types of JSON, which the schema
// check knows, and drops keys without a value.
func (l layer) plain(value any, at []string) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, member := range v {
			if member == nil {
				continue
			}
			plain, err := l.plain(member, below(at, key))
			if err != nil {
				return nil, err
			}
			out[key] = plain
		}
		return out, nil
	case map[any]any:
		return nil, l.errorAt(at, "a key that is not text; put it in quotes")
	case []any:
		out := make([]any, len(v))
		for i, member := range v {
			plain, err := l.plain(member, below(at, strconv.Itoa(i)))
			if err != nil {
				return nil, err
			}
			out[i] = plain
		}
		return out, nil
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return nil, l.errorAt(at, "not a finite number")
		}
	case time.Time:
		return v.Format(time.RFC3339), nil
	}
	return value, nil
}

// errorAt makes an error for the value at a path of keys.
func (l layer) errorAt(at []string, format string, args ...any) error {
	reason := fmt.Sprintf(format, args...)
	if len(at) > 0 {
		reason = dotted(at) + ": " + reason
	}
	return &Error{Path: l.path, Line: l.lineOf(at), Reason: reason}
}

// lineOf is the line of the key at a path of keys, or of the innermost one of
// them that is written in the file: merge keys bring in others.
func (l layer) lineOf(at []string) int {
	line, _ := l.find(at)
	return line
}

// has reports whether the file has a value at a path of keys.
func (l layer) has(at []string) bool {
	_, whole := l.find(at)
	return whole
}

func (l layer) find(at []string) (line int, whole bool) {
	if l.root == nil {
		return 0, false
	}
	node, line := l.root, l.root.Line
	for _, key := range at {
		if node.Kind == yaml.AliasNode {
			node = node.Alias
		}
		keyNode, value := member(node, key)
		if value == nil {
			return line, false
		}
		node, line = value, keyNode.Line
	}
	return line, true
}

// member is the key and value of a mapping, or twice the element of a list.
func member(node *yaml.Node, key string) (keyNode, value *yaml.Node) {
	if node.Kind == yaml.SequenceNode {
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i], node.Content[i]
		}
		return nil, nil
	}
	if node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == key {
				return node.Content[i], node.Content[i+1]
			}
		}
	}
	return nil, nil
}

// below is the path of keys at with one more; at stays as it is.
func below(at []string, key string) []string { return slices.Concat(at, []string{key}) }

// nodeOf is the YAML of a value of JSON types. To decode resilience.yaml by way of
// text took ten times as long and six times the memory (benchmark of decode).
func nodeOf(value any) *yaml.Node {
	switch v := value.(type) {
	case map[string]any:
		node := &yaml.Node{Kind: yaml.MappingNode}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			node.Content = append(node.Content, nodeOf(key), nodeOf(v[key]))
		}
		return node
	case []any:
		node := &yaml.Node{Kind: yaml.SequenceNode}
		for _, element := range v {
			node.Content = append(node.Content, nodeOf(element))
		}
		return node
	case string:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v}
	case float64:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatFloat(v, 'g', -1, 64)}
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}
	default: // a whole number or a truth value
		return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(v)}
	}
}

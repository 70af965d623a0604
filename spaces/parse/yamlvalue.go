package parse

import (
	"math"

	"gopkg.in/yaml.v3"
)

const (
	// maxYAMLNodes bounds the keys and values of a document after its aliases are
	// expanded, so that a few lines cannot grow to gigabytes.
	maxYAMLNodes = 100_000
	// maxYAMLDepth bounds nesting; it also ends an alias that contains itself.
	maxYAMLDepth = 64
)

// yamlReader turns nodes into plain values.
type yamlReader struct {
	src   *source
	nodes int
}

// entry is a key of a mapping.
type entry struct {
	key   string
	value *yaml.Node
}

// value returns a node as nil, bool, int64, float64, string, []any or
// map[string]any. Values that JSON cannot hold (dates, binary, NaN) stay the text
// that was written.
func (r *yamlReader) value(n *yaml.Node, depth int) (any, error) {
	if err := r.count(n, depth); err != nil {
		return nil, err
	}
	switch n.Kind {
	case yaml.AliasNode:
		return r.value(n.Alias, depth+1)
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, c := range n.Content {
			v, err := r.value(c, depth+1)
			if err != nil {
				return nil, err
			}
			list[i] = v
		}
		return list, nil
	case yaml.MappingNode:
		entries, err := r.entries(n, depth)
		if err != nil {
			return nil, err
		}
		m := make(map[string]any, len(entries))
		for _, e := range entries {
			if m[e.key], err = r.value(e.value, depth+1); err != nil {
				return nil, err
			}
		}
		return m, nil
	default:
		return scalar(n), nil
	}
}

// count keeps the expanded document within its bounds.
func (r *yamlReader) count(n *yaml.Node, depth int) error {
	if depth > maxYAMLDepth {
		return r.src.errorf(n.Line, "YAML: values are nested more than %d deep", maxYAMLDepth)
	}
	if r.nodes++; r.nodes > maxYAMLNodes {
		return r.src.errorf(n.Line, "YAML: the document has more than %d keys and values", maxYAMLNodes)
	}
	return nil
}

// entries lists the keys of a mapping in file order; keys that come through a
// merge key ("<<") follow, the mapping's own winning over them.
func (r *yamlReader) entries(n *yaml.Node, depth int) ([]entry, error) {
	var own []entry
	var merged []*yaml.Node
	lines := make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolved(n.Content[i]), n.Content[i+1]
		if err := r.count(n.Content[i], depth); err != nil {
			return nil, err
		}
		switch {
		case key.ShortTag() == "!!merge":
			merged = append(merged, value)
			continue
		case key.Kind != yaml.ScalarNode:
			return nil, r.src.errorf(n.Content[i].Line, "YAML: a key must be text")
		case lines[key.Value] != 0:
			return nil, r.src.errorf(n.Content[i].Line, "YAML: the key %q already stands on line %d", key.Value, lines[key.Value])
		}
		lines[key.Value] = n.Content[i].Line
		own = append(own, entry{key.Value, value})
	}
	for _, m := range merged {
		more, err := r.mergeEntries(m, depth+1)
		if err != nil {
			return nil, err
		}
		for _, e := range more {
			if lines[e.key] == 0 {
				lines[e.key] = e.value.Line
				own = append(own, e)
			}
		}
	}
	return own, nil
}

// mergeEntries lists what a merge key brings: a mapping, or a list of them of
// which the first wins.
func (r *yamlReader) mergeEntries(n *yaml.Node, depth int) ([]entry, error) {
	if err := r.count(n, depth); err != nil {
		return nil, err
	}
	target := resolved(n)
	if target.Kind == yaml.MappingNode {
		return r.entries(target, depth)
	}
	if target.Kind != yaml.SequenceNode {
		return nil, r.src.errorf(n.Line, "YAML: a merge key needs a mapping or a list of them")
	}
	var all []entry
	for _, c := range target.Content {
		more, err := r.mergeEntries(c, depth+1)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// resolved follows an alias to what it stands for.
func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func scalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return b
		}
	case "!!int":
		var i int64
		if n.Decode(&i) == nil {
			return i
		}
		return float(n)
	case "!!float":
		return float(n)
	}
	return n.Value
}

// float returns a finite number, else the text.
func float(n *yaml.Node) any {
	var f float64
	if n.Decode(&f) != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return n.Value
	}
	return f
}

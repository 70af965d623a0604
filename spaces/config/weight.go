package config

import (
	"fmt"

	"gopkg.in/yaml.v3"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// maxNodes bounds the keys and values of a settings file, many times those of the
// largest that is shipped. Decoding compares each key of a mapping with each other
// one, and validation says of each value what is wrong with it.
const maxNodes = 20_000

// checkWeight refuses a document that costs far more to decode than to read, and a key
// that stands twice in a mapping, of which the decoder makes a message for each pair.
func checkWeight(path string, root *yaml.Node) error {
	nodes := 0
	var look func(n *yaml.Node) error
	look = func(n *yaml.Node) error {
		if nodes++; nodes > maxNodes {
			return &Error{Path: path, Line: n.Line, Reason: fmt.Sprintf("more than %d keys and values", maxNodes)}
		}
		var keys map[string]int
		for i, kid := range n.Content {
			if n.Kind == yaml.MappingNode && i%2 == 0 && kid.Kind == yaml.ScalarNode {
				if keys == nil {
					keys = map[string]int{}
				}
				if line, twice := keys[kid.Value]; twice {
					return &Error{Path: path, Line: kid.Line, Reason: fmt.Sprintf("key %q already defined at line %d", item.Shown(kid.Value), line)}
				}
				keys[kid.Value] = kid.Line
			}
			if err := look(kid); err != nil {
				return err
			}
		}
		return nil
	}
	return look(root)
}

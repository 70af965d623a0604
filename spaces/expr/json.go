package expr

import (
	"encoding/json"
	"fmt"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// MarshalJSON writes the condition as [ParseCondition] reads it. Those of the short
// form that compare data with data cannot be written so.
func (c Condition) MarshalJSON() ([]byte, error) {
	if c.node == nil {
		return []byte("null"), nil
	}
	written, err := writtenOf(c.node)
	if err != nil {
		return nil, err
	}
	return json.Marshal(written)
}

// UnmarshalJSON reads what MarshalJSON has written.
func (c *Condition) UnmarshalJSON(data []byte) error {
	written, err := item.ReadJSON(data)
	if err != nil {
		return err
	}
	plain, err := item.PlainNumbers(written)
	if err != nil {
		return err
	}
	*c, err = ParseCondition(plain)
	return err
}

func writtenOf(n node) (any, error) {
	switch n := n.(type) {
	case all:
		return writtenList("all", n)
	case anyOf:
		return writtenList("any", n)
	case negation:
		inner, err := writtenOf(n.of)
		return map[string]any{"not": inner}, err
	case test:
		if n.right.path != nil {
			return nil, fmt.Errorf("the condition %s compares data with data", n)
		}
		return map[string]any{"path": n.path.String(), "op": n.op, "value": n.right.value}, nil
	}
	return nil, fmt.Errorf("bug; a condition of type %T", n)
}

func writtenList(combine string, parts []node) (any, error) {
	list := make([]any, len(parts))
	for i, part := range parts {
		var err error
		if list[i], err = writtenOf(part); err != nil {
			return nil, err
		}
	}
	return map[string]any{combine: list}, nil
}

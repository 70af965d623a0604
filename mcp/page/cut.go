package page

import (
	"bytes"
	"encoding/json"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

const (
	// longText is how much of a text is shown of an event, in bytes.
	longText = 8 << 10
	// longValue is how much of a whole event is shown.
	longValue = 64 << 10
)

// shorten cuts long texts in a JSON value, until the value is not long, and reports
// whether it has cut any. Nothing else of the value changes but the order of members.
func shorten(raw json.RawMessage) (short json.RawMessage, cut bool) {
	if len(raw) <= longText {
		return raw, false
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return json.RawMessage(`{}`), true
	}
	for most := longText; most > 0; most /= 8 {
		var was bool
		value, was = shorter(value, most)
		cut = cut || was
		b, err := plain(value)
		if err == nil && (len(b) <= longValue || !cut && most == longText && len(b) <= 2*longValue) {
			return b, cut
		}
	}
	return json.RawMessage(`{}`), true
}

// shorter cuts the texts in a value that are longer than most bytes.
func shorter(value any, most int) (any, bool) {
	cut := false
	switch v := value.(type) {
	case string:
		if len(v) <= most {
			return v, false
		}
		return item.Begin(v, most) + "…", true
	case []any:
		for i := range v {
			var was bool
			v[i], was = shorter(v[i], most)
			cut = cut || was
		}
	case map[string]any:
		for name := range v {
			var was bool
			v[name], was = shorter(v[name], most)
			cut = cut || was
		}
	}
	return value, cut
}

// Package secret keeps the values of a thread's secret inputs apart from every
// text: a model and all files have placeholders, tools get the values at the last
// moment, and what they return is masked before anybody else sees it.
//
// Masking is for accidents: a tool that prints what it was given, an error that
// quotes it. A thread that may run commands of its own can still send a value away
// or disguise it; its capabilities say which commands it may run.
package secret

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/inputs"
)

// Vault holds secrets. The zero value and nil hold none. Once all secrets are
// added it may be used by several goroutines.
type Vault struct {
	values map[string]string // by placeholder
	named  map[string]string // by name
	asIs   *finder
	joined [len(lineBreaks)]*finder // for texts without line breaks
	reach  int                      // bytes of the longest form
}

// New returns a vault with the values of secret inputs, by name, as
// [inputs.Validate] returns them.
func New(values map[string]string) *Vault {
	v := &Vault{values: make(map[string]string, len(values)), named: maps.Clone(values)}
	var forms []form
	for name, value := range values {
		placeholder := inputs.Placeholder(name)
		v.values[placeholder] = value
		for _, text := range formsOf(value) {
			forms = append(forms, form{text, placeholder})
			v.reach = max(v.reach, len(text))
		}
	}
	v.asIs = newFinder(sorted(forms))
	for i, breaks := range lineBreaks {
		var without []form
		for _, f := range forms {
			if text := join(f.text, breaks).text; len(text) >= inputs.MinSecret { // else it could not be told from other text
				without = append(without, form{text, f.placeholder})
			}
		}
		v.joined[i] = newFinder(sorted(without))
	}
	return v
}

// sorted puts longer forms first, and leaves out what is there twice.
func sorted(forms []form) []form {
	forms = slices.Clone(forms)
	slices.SortFunc(forms, func(a, b form) int {
		return cmp.Or(len(b.text)-len(a.text), strings.Compare(a.text, b.text), strings.Compare(a.placeholder, b.placeholder))
	})
	return slices.Compact(forms)
}

// Values are the secrets by name, for a process that is to have them as well.
func (v *Vault) Values() map[string]string {
	if v.Empty() {
		return nil
	}
	return maps.Clone(v.named)
}

// Empty reports whether there are no secrets.
func (v *Vault) Empty() bool { return v == nil || len(v.values) == 0 }

// Has reports whether there is a secret of that name.
func (v *Vault) Has(name string) bool {
	if v == nil {
		return false
	}
	_, has := v.values[inputs.Placeholder(name)]
	return has
}

// Named are the placeholders in a text that stand for secrets of this vault.
func (v *Vault) Named(text string) []string {
	if v.Empty() {
		return nil
	}
	return slices.DeleteFunc(inputs.Placeholders(text), func(p string) bool {
		_, known := v.values[p]
		return !known
	})
}

// RevealText puts values in the place of their placeholders. It leaves
// what only looks like a placeholder.
func (v *Vault) RevealText(text string) string {
	if v.Empty() {
		return text
	}
	return inputs.ReplacePlaceholders(text, func(p string) string {
		if value, known := v.values[p]; known {
			return value
		}
		return p
	})
}

// Reveal does the same in the strings of a JSON value, but not in the names of
// its fields.
func (v *Vault) Reveal(value json.RawMessage) json.RawMessage {
	if v.Empty() {
		return value
	}
	return mapStrings(value, func(_, text string) string { return v.RevealText(text) })
}

// MaskJSON hides values in the strings of a JSON value, so that it stays what it
// is: the names of fields stay, and one word in small letters where a field takes
// one of a few words, such as a state. Other text is masked as text.
func (v *Vault) MaskJSON(value []byte) []byte {
	if v.Empty() || len(v.spans(string(value))) == 0 {
		return value
	}
	if !json.Valid(value) {
		return []byte(v.Mask(string(value)))
	}
	return mapStrings(value, func(field, text string) string {
		if takesWord(field) && isWord(text) {
			return text
		}
		return v.Mask(text)
	})
}

// takesWord names the fields of events and outcomes that take one of a few words,
// without which nobody could read them.
func takesWord(field string) bool {
	switch field {
	case "type", "kind", "state", "status", "role", "stop_reason", "category", "code", "via", "decision", "event", "level", "source":
		return true
	}
	return false
}

func isWord(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') })
}

// mapStrings changes the strings of valid JSON that are no names of fields. Change
// is told the name of the field before.
func mapStrings(value []byte, change func(field, text string) string) []byte {
	var out []byte
	var field string
	done := 0
	for i := 0; i < len(value); i++ {
		if value[i] != '"' {
			continue
		}
		start := i
		for i++; i < len(value) && value[i] != '"'; i++ {
			if value[i] == '\\' {
				i++
			}
		}
		if i >= len(value) {
			break
		}
		literal := value[start : i+1]
		var text string
		if json.Unmarshal(literal, &text) != nil {
			continue
		}
		if isName(value[i+1:]) {
			field = text
			continue
		}
		if changed := change(field, text); changed != text {
			out = append(append(out, value[done:start]...), quote(changed)...)
			done = i + 1
		}
	}
	if done == 0 {
		return value
	}
	return append(out, value[done:]...)
}

// isName reports whether a string with this behind it is the name of a field.
func isName(rest []byte) bool {
	for _, c := range rest {
		switch c {
		case ' ', '\t', '\r', '\n':
		default:
			return c == ':'
		}
	}
	return false
}

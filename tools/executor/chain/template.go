package chain

import (
	"encoding/json"
	"fmt"
	"strings"
)

// values are what templates are filled with.
type values struct {
	// variable is the value of a variable of the environment, and whether there is
	// one.
	variable func(name string) (string, bool)
	params   map[string]any
}

// Absent is the value of a parameter that a tool declares and a call does not have. It is
// empty in a text; what is nothing else is left out.
type Absent struct{}

// Fill puts values into the strings of a JSON-like value: ${VAR} and ${VAR:-default}
// from the environment, {name} from the parameters of the call and from what is
// known of the tool. Each string is read once, from left to right: what was put in is
// not looked at again. A string that is one {name} takes the value as it is, with
// its type. A variable that is not set is empty, a name that is not known stays. An
// element of a mapping or list that is one {name} without a value is left out.
func (p *Plan) Fill(v any) any { return p.values.fill(v) }

// Absent reports whether a template is one {name} without a value.
func (p *Plan) Absent(template any) bool { return p.values.absent(template) }

// Text is Fill for one string. Escape makes a value fit for the place where it
// stands, such as a query string; nil leaves it as it is. Variables are escaped too.
func (p *Plan) Text(template string, escape func(value string) string) string {
	return p.values.text(template, escape)
}

func (v values) fill(value any) any {
	switch value := value.(type) {
	case string:
		if name, rest, ok := reference(value); ok && rest == "" {
			param, known := v.params[name]
			if _, absent := param.(Absent); absent {
				return nil
			}
			if known {
				return param
			}
		}
		return v.text(value, nil)
	case []any:
		filled := make([]any, 0, len(value))
		for _, element := range value {
			if !v.absent(element) {
				filled = append(filled, v.fill(element))
			}
		}
		return filled
	case map[string]any:
		filled := make(map[string]any, len(value))
		for key, element := range value {
			if !v.absent(element) {
				filled[key] = v.fill(element)
			}
		}
		return filled
	}
	return value
}

func (v values) absent(template any) bool {
	text, _ := template.(string)
	name, rest, ok := reference(text)
	_, absent := v.params[name].(Absent)
	return ok && rest == "" && absent
}

func (v values) text(template string, escape func(string) string) string {
	if escape == nil {
		escape = func(s string) string { return s }
	}
	var b strings.Builder
	rest := template
	for {
		at := strings.IndexAny(rest, "${")
		if at < 0 {
			b.WriteString(rest)
			return b.String()
		}
		b.WriteString(rest[:at])
		rest = rest[at:]
		value, after, known := v.next(rest)
		if known {
			value = escape(value)
		}
		b.WriteString(value)
		rest = after
	}
}

// next reads what stands at the beginning of a text, which is $ or {: the value of a
// reference, or, where it is none, the characters as they are.
func (v values) next(text string) (value, rest string, known bool) {
	if name, otherwise, rest, ok := variable(text); ok {
		set, _ := v.variable(name)
		if set == "" {
			set = otherwise
		}
		return set, rest, true
	}
	if strings.HasPrefix(text, "${") { // of another syntax, such as a path of a hook
		return text[:2], text[2:], false
	}
	if name, rest, ok := reference(text); ok {
		if value, known := v.params[name]; known {
			return TextOf(value), rest, true
		}
	}
	return text[:1], text[1:], false
}

// variable reads a ${NAME} or ${NAME:-default} at the beginning of a text.
func variable(text string) (name, otherwise, rest string, ok bool) {
	if !strings.HasPrefix(text, "${") {
		return "", "", "", false
	}
	end := strings.IndexByte(text, '}')
	if end < 0 {
		return "", "", "", false
	}
	name, otherwise, _ = strings.Cut(text[2:end], ":-")
	if !variableName(name) {
		return "", "", "", false
	}
	return name, otherwise, text[end+1:], true
}

// variableName reports whether a name is one of the environment's: upper case only,
// since ${a.b} is a path of another syntax.
func variableName(name string) bool {
	return name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == "" && (name[0] < '0' || name[0] > '9')
}

// reference reads a {name} at the beginning of a text.
func reference(text string) (name, rest string, ok bool) {
	if !strings.HasPrefix(text, "{") {
		return "", "", false
	}
	end := strings.IndexByte(text, '}')
	if end < 2 || strings.Trim(text[1:end], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
		return "", "", false
	}
	return text[1:end], text[end+1:], true
}

// TextOf is a value within a longer text: a string as it is, null and [Absent] as nothing,
// everything else as JSON.
func TextOf(value any) string {
	switch value := value.(type) {
	case nil, Absent:
		return ""
	case string:
		return value
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

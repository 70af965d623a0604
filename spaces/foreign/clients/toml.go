package clients

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// maxDepth is how deep arrays and tables of a TOML file may be nested: its parser goes
// down once for each.
const maxDepth = 200

// statement is a header or a key with its value in a TOML file, with the comment behind
// it and the end of its last line.
type statement struct {
	from, to int
	path     []string // of the table, and of the key
	header   bool
}

// DecodeTOML reads a configuration in TOML, within bounds. The error is a [*SyntaxError].
func DecodeTOML(content []byte) (map[string]any, error) {
	if len(content) > maxTOML {
		return nil, &SyntaxError{Err: fmt.Errorf("it has more than %d MiB", maxTOML>>20)}
	}
	body := bytes.TrimPrefix(content, []byte(mark))
	for at := 0; at < len(body); {
		end, depth := statementEnd(body, at)
		if depth > maxDepth {
			line, column := lineAt(content, at)
			return nil, &SyntaxError{Line: line, Column: column, Err: errors.New("it is nested too deeply")}
		}
		at = end
	}
	whole := make(map[string]any)
	if _, err := toml.Decode(string(body), &whole); err != nil {
		if wrong, ok := errors.AsType[toml.ParseError](err); ok {
			_, column := lineAt(body, wrong.Position.Start)
			return nil, &SyntaxError{Line: wrong.Position.Line, Column: column, Err: errors.New(wrong.Message)}
		}
		return nil, &SyntaxError{Err: err}
	}
	return whole, nil
}

// statementEnd is where the statement that begins at a line ends, behind the end of its
// line, and how deep its arrays and tables go.
func statementEnd(content []byte, at int) (end, deepest int) {
	depth := 0
	for at < len(content) {
		switch c := content[at]; c {
		case '#':
			next := bytes.IndexByte(content[at:], '\n')
			if next < 0 {
				return len(content), deepest
			}
			at += next
			continue
		case '"', '\'':
			at = stringEnd(content, at, c)
			continue
		case '[', '{':
			depth++
			deepest = max(deepest, depth)
		case ']', '}':
			depth--
		case '\n':
			if depth <= 0 {
				return at + 1, deepest
			}
		}
		at++
	}
	return len(content), deepest
}

// stringEnd is where a string ends, of one line or of several.
func stringEnd(content []byte, at int, quote byte) int {
	three := bytes.Repeat([]byte{quote}, 3)
	many := bytes.HasPrefix(content[at:], three)
	if at++; many {
		at += 2
	}
	for at < len(content) {
		switch {
		case quote == '"' && content[at] == '\\':
			at++
		case many && bytes.HasPrefix(content[at:], three):
			for at += 3; at < len(content) && content[at] == quote; at++ { // quotes before the end belong to the string
			}
			return at
		case !many && (content[at] == quote || content[at] == '\n'):
			if content[at] == '\n' {
				return at // it is not closed, which the parser tells
			}
			return at + 1
		}
		at++
	}
	return min(at, len(content))
}

// statements are those of a configuration that has been decoded.
func statements(content []byte) []statement {
	var (
		all   []statement
		table []string
		at    int
	)
	if bytes.HasPrefix(content, []byte(mark)) {
		at = len(mark)
	}
	for at < len(content) {
		end, _ := statementEnd(content, at)
		text := bytes.TrimSpace(content[at:end])
		switch {
		case len(text) == 0 || text[0] == '#':
		case text[0] == '[':
			table = headerPath(text)
			all = append(all, statement{at, end, table, true})
		default:
			all = append(all, statement{at, end, slices.Concat(table, keyPath(text)), false})
		}
		at = end
	}
	return all
}

// headerPath is the path that a header names; for arrays of tables with a last part that
// is no key of ours.
func headerPath(text []byte) []string {
	array := bytes.HasPrefix(text, []byte("[["))
	path := keyPath(bytes.TrimLeft(text, "["))
	if array {
		path = append(path, "[]")
	}
	return path
}

// keyPath is the path that a key names, with quotes and dots.
func keyPath(text []byte) []string {
	var path []string
	for len(text) > 0 {
		text = bytes.TrimLeft(text, " \t")
		if len(text) == 0 {
			break
		}
		switch c := text[0]; c {
		case '"', '\'':
			end := stringEnd(text, 0, c)
			part := string(text[:end])
			if plain, err := strconv.Unquote(part); err == nil && c == '"' {
				part = plain
			} else {
				part = strings.Trim(part, string(c))
			}
			path, text = append(path, part), text[end:]
		case '.':
			text = text[1:]
		case '=', ']', '#', '\n':
			return path
		default:
			end := bytes.IndexAny(text, " \t.=]#\n")
			if end < 0 {
				end = len(text)
			}
			path, text = append(path, string(text[:end])), text[end:]
		}
	}
	return path
}

// below reports whether a path is another or lies in it.
func below(path, above []string) bool {
	return len(path) >= len(above) && slices.Equal(path[:len(above)], above)
}

// locateTOML is the text of an entry, and its line.
func locateTOML(content []byte, keys []string, name string) (string, int) {
	path := append(slices.Clone(keys), name)
	var text []string
	line := 0
	for _, s := range statements(content) {
		if !below(s.path, path) {
			continue
		}
		if line == 0 {
			line, _ = lineAt(content, s.from)
		}
		text = append(text, strings.TrimRight(string(content[s.from:s.to]), "\r\n"))
	}
	return strings.Join(text, "\n"), line
}

// editTOML puts an entry into a configuration that has been decoded.
func editTOML(content []byte, keys []string, name string, members []member, replace bool) ([]byte, error) {
	path := append(slices.Clone(keys), name)
	if replace {
		var err error
		if content, err = takeTOML(content, keys, name); err != nil {
			return nil, err
		}
	}
	all := statements(content)
	if slices.ContainsFunc(all, func(s statement) bool { return !s.header && len(s.path) < len(path) && below(path, s.path) }) {
		return nil, ErrByHand // an inline table can have no table added
	}
	at := slices.IndexFunc(all, func(s statement) bool { return s.header && slices.Equal(s.path, path) })
	if at < 0 {
		if slices.ContainsFunc(all, func(s statement) bool { return below(s.path, path) }) && !replace {
			return inlineTOML(content, path, members)
		}
		return appendTOML(content, path, members), nil
	}
	return mergeTOML(content, all[at:], path, members), nil
}

// inlineTOML leaves an entry that has no header of its own as it is, if that will do.
func inlineTOML(content []byte, path []string, members []member) ([]byte, error) {
	whole, err := DecodeTOML(content)
	if err != nil {
		return nil, err
	}
	value, _ := lookUp(whole, path)
	entry, _ := value.(map[string]any)
	for _, m := range members {
		is, there := entry[m.key]
		if !there || !m.tuned && !equal(is, joinedWith(is, m)) {
			return nil, ErrByHand
		}
	}
	return content, nil
}

// appendTOML writes a table behind everything else.
func appendTOML(content []byte, path []string, members []member) []byte {
	nl := newline(content)
	var b bytes.Buffer
	b.Write(content)
	if len(bytes.TrimPrefix(content, []byte(mark))) > 0 {
		if !bytes.HasSuffix(content, []byte("\n")) {
			b.WriteString(nl)
		}
		b.WriteString(nl)
	}
	keys := make([]string, len(path))
	for i, key := range path {
		keys[i] = bareOrQuoted(key)
	}
	b.WriteString("[" + strings.Join(keys, ".") + "]" + nl)
	for _, m := range members {
		b.WriteString(m.key + " = " + tomlText(m.value) + nl)
	}
	return b.Bytes()
}

// mergeTOML makes members of a table what they should be. All begins with its header.
func mergeTOML(content []byte, all []statement, path []string, members []member) []byte {
	whole, err := DecodeTOML(content)
	if err != nil {
		return content
	}
	value, _ := lookUp(whole, path)
	entry, _ := value.(map[string]any)
	nl, end := newline(content), all[0].to
	body := make(map[string]statement)
	for _, s := range all[1:] {
		if s.header {
			break
		}
		end = s.to
		if len(s.path) == len(path)+1 {
			body[s.path[len(path)]] = s
		}
	}
	var edits []splice
	var missing strings.Builder
	for _, m := range members {
		is, there := entry[m.key]
		wanted := joinedWith(is, m)
		switch s, plain := body[m.key]; {
		case !there:
			missing.WriteString(m.key + " = " + tomlText(wanted) + nl)
		case m.tuned || equal(is, wanted) || !plain:
		default:
			from, to := valueSpan(content, s)
			edits = append(edits, splice{from, to, tomlText(wanted)})
		}
	}
	if missing.Len() > 0 {
		text := missing.String()
		if end > 0 && content[end-1] != '\n' {
			text = nl + strings.TrimSuffix(text, nl)
		}
		edits = append(edits, splice{end, end, text})
	}
	return spliced(content, edits)
}

// valueSpan is where the value of a statement stands, without the comment behind it.
func valueSpan(content []byte, s statement) (from, to int) {
	from = s.from
	for content[from] != '=' {
		if c := content[from]; c == '"' || c == '\'' {
			from = stringEnd(content, from, c)
			continue
		}
		from++
	}
	for from++; content[from] == ' ' || content[from] == '\t'; from++ {
	}
	depth := 0
	for at := from; at < s.to; {
		switch c := content[at]; c {
		case '"', '\'':
			at = stringEnd(content, at, c)
			to = at
			continue
		case '#':
			if depth <= 0 {
				return from, to
			}
			at += max(bytes.IndexByte(content[at:s.to], '\n'), 1)
			continue
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		if at++; len(bytes.TrimSpace(content[at-1:at])) > 0 {
			to = at
		}
	}
	return from, to
}

// joinedWith is what is wanted of a member; lists that are joined keep what they have.
func joinedWith(is any, m member) any {
	wanted, ok := m.value.([]string)
	if !ok || !m.joined {
		return m.value
	}
	all := texts(is)
	for _, text := range wanted {
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// equal compares a value that was read with one that is wanted.
func equal(is, wanted any) bool {
	switch wanted := wanted.(type) {
	case []string:
		list, ok := is.([]any)
		return ok && len(list) == len(wanted) && slices.Equal(texts(is), wanted)
	case []any:
		return slices.EqualFunc(wanted, asList(is), func(a, b any) bool { return a == b })
	case int:
		return is == int64(wanted)
	}
	return is == wanted
}

func asList(value any) []any {
	list, _ := value.([]any)
	return list
}

// tomlText writes a value on one line.
func tomlText(value any) string {
	list, ok := value.([]string)
	if !ok {
		return quotedTOML(value)
	}
	all := make([]string, len(list))
	for i, text := range list {
		all[i] = quotedTOML(text)
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// quotedTOML is a text, a number or a truth. The escapes of JSON are TOML's too, but for
// the character DEL, which TOML wants escaped.
func quotedTOML(value any) string {
	return strings.ReplaceAll(quoted(value), "\x7f", `\u007f`)
}

func bareOrQuoted(key string) string {
	for _, c := range key {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return quotedTOML(key)
		}
	}
	return key
}

// takeTOML takes the tables and keys of an entry out.
func takeTOML(content []byte, keys []string, name string) ([]byte, error) {
	path := append(slices.Clone(keys), name)
	all := statements(content)
	var edits []splice
	for i := 0; i < len(all); i++ {
		if !below(all[i].path, path) {
			continue
		}
		from, first := all[i].from, i
		for i+1 < len(all) && below(all[i+1].path, path) {
			i++
		}
		to := all[i].to
		if all[first].header && i == len(all)-1 && len(bytes.TrimSpace(content[to:])) == 0 {
			from = withoutBlankLine(content, from)
		}
		edits = append(edits, splice{from, to, ""})
	}
	if len(edits) == 0 {
		return nil, ErrByHand
	}
	return spliced(content, edits), nil
}

// withoutBlankLine is where the empty line before a place begins, if there is one.
func withoutBlankLine(content []byte, at int) int {
	for _, blank := range []string{"\r\n", "\n"} {
		if before, ok := bytes.CutSuffix(content[:at], []byte(blank)); ok && (len(before) == 0 || bytes.HasSuffix(before, []byte("\n"))) {
			return len(before)
		}
	}
	return at
}

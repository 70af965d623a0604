package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// maxJSON and maxTOML are how many bytes of a configuration are edited. Claude Code's
	// own file, which holds much else, has some MiB.
	maxJSON = 32 << 20
	maxTOML = 4 << 20
)

// SyntaxError says where a configuration cannot be read.
type SyntaxError struct {
	Line, Column int // from 1; 0 where it is not known
	Err          error
}

func (e *SyntaxError) Error() string {
	if e.Line == 0 {
		return e.Err.Error()
	}
	return fmt.Sprintf("line %d, column %d: %v", e.Line, e.Column, e.Err)
}

func (e *SyntaxError) Unwrap() error { return e.Err }

// ShapeError says that a configuration holds something else than a table of servers.
type ShapeError struct {
	Line int
	At   string // the keys, with dots
	Is   string // what stands there
}

func (e *ShapeError) Error() string {
	return fmt.Sprintf("line %d: %s is %s, where an object is expected", e.Line, e.At, e.Is)
}

// OtherError says that the name belongs to a server of another kind.
type OtherError struct {
	At    string
	Found Installed
}

func (e *OtherError) Error() string {
	return fmt.Sprintf("line %d: %s is another server", e.Found.Line, e.At)
}

// ErrByHand says that a configuration is written in a form that is not edited.
var ErrByHand = errors.New("it is written in a form that this program does not edit")

// Change is what is asked of a configuration.
type Change struct {
	Name    string // of the server
	Program string // whose entries may be replaced, as [Installed.Is] compares it
	Entry   Entry
	NewArgs bool // arguments of an entry that is there are replaced
	Force   bool // so is an entry of any other kind
}

// Put returns a configuration with an entry. It is the same when nothing has to change.
// An entry of the program that is there keeps what people have added to it. The error is
// a [*SyntaxError], a [*ShapeError], an [*OtherError] or [ErrByHand].
func (c Client) Put(content []byte, change Change) ([]byte, error) {
	found, is, err := c.Find(content, change.Name)
	if err != nil {
		return nil, err
	}
	ours := is && found.Is(change.Program)
	if is && !ours && !change.Force {
		return nil, &OtherError{At: c.At(change.Name), Found: found}
	}
	entry := change.Entry
	if ours {
		entry = found.kept(entry, change.NewArgs)
	}
	edit := editJSON
	if c.format == tomlFormat {
		edit = editTOML
	}
	after, err := edit(content, c.keysIn(content), change.Name, c.membersOf(entry), is && !ours)
	if err != nil {
		return nil, err
	}
	return after, c.verify(content, after, change.Name, true)
}

// Take returns a configuration without an entry. Before are earlier states of the file,
// newest first; nil stands for no file. When putting the entry into one of them makes what
// is there now, that one is returned, and nil means that there was no file.
func (c Client) Take(content []byte, name string, before ...[]byte) ([]byte, error) {
	found, is, err := c.Find(content, name)
	if err != nil || !is {
		return content, err
	}
	for _, earlier := range before {
		if c.makes(earlier, content, name, found) {
			return earlier, nil
		}
	}
	take := takeJSON
	if c.format == tomlFormat {
		take = takeTOML
	}
	after, err := take(content, c.keysIn(content), name)
	if err != nil {
		return nil, err
	}
	return after, c.verify(content, after, name, false)
}

// makes reports whether an earlier state with the entry is what is there now.
func (c Client) makes(earlier, now []byte, name string, found Installed) bool {
	if _, is, err := c.Find(earlier, name); err != nil || is {
		return false
	}
	entry := Entry{Command: found.Command, Args: found.Args, Variables: found.Listed}
	if len(entry.Variables) == 0 {
		entry.Variables = c.referred(found)
	}
	again, err := c.Put(earlier, Change{Name: name, Entry: entry})
	return err == nil && bytes.Equal(again, now)
}

// referred are the variables that an entry refers to, in its order.
func (c Client) referred(found Installed) []string {
	if c.reference == nil {
		return nil
	}
	names := make([]string, 0, len(found.Env))
	for variable, value := range found.Env {
		if value == c.reference(variable) {
			names = append(names, variable)
		}
	}
	at := func(variable string) int { return strings.Index(found.Text, `"`+variable+`"`) }
	slices.SortFunc(names, func(a, b string) int { return at(a) - at(b) })
	return names
}

// Snippet is a configuration that has the entry alone, for people to put in themselves.
func (c Client) Snippet(name string, e Entry) (string, error) {
	content, err := c.Put(nil, Change{Name: name, Entry: e})
	return string(content), err
}

// Find returns the entry of a name, and whether there is one.
func (c Client) Find(content []byte, name string) (Installed, bool, error) {
	all, err := c.servers(content)
	if err != nil {
		return Installed{}, false, err
	}
	values, is := all[name]
	if !is {
		return Installed{}, false, nil
	}
	entry, ok := values.(map[string]any)
	if !ok {
		entry = nil // another kind, whatever it is
	}
	found := installed(entry)
	locate := locateJSON
	if c.format == tomlFormat {
		locate = locateTOML
	}
	found.Text, found.Line = locate(content, c.keysIn(content), name)
	return found, true, nil
}

// Names are those of the servers that start a program.
func (c Client) Names(content []byte, program string) ([]string, error) {
	all, err := c.servers(content)
	if err != nil {
		return nil, err
	}
	var names []string
	for name, values := range all {
		if entry, ok := values.(map[string]any); ok && installed(entry).Is(program) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// servers is the table of servers.
func (c Client) servers(content []byte) (map[string]any, error) {
	whole, err := c.decode(content)
	if err != nil {
		return nil, err
	}
	table := whole
	for i, key := range c.keysIn(content) {
		inner, is := table[key]
		if !is || inner == nil {
			return nil, nil //nolint:nilnil // there is none
		}
		next, ok := inner.(map[string]any)
		if !ok {
			keys := c.keysIn(content)[:i+1]
			line := 1
			if c.format == jsonFormat {
				_, line = locateJSON(content, keys[:i], key)
			}
			return nil, &ShapeError{Line: line, At: strings.Join(keys, "."), Is: kindOf(inner)}
		}
		table = next
	}
	return table, nil
}

// keysIn are the keys of the table of servers. OpenCode 2 has them one table further in,
// and a configuration for it is known by that.
func (c Client) keysIn(content []byte) []string {
	if c.ID != "opencode" {
		return c.keys
	}
	whole, err := c.decode(content)
	if err != nil {
		return c.keys
	}
	mcp, _ := whole["mcp"].(map[string]any)
	servers, is := mcp["servers"].(map[string]any)
	if _, server := servers["command"]; !is || server {
		return c.keys
	}
	return []string{"mcp", "servers"}
}

// decode reads a configuration; an empty one has nothing in it.
func (c Client) decode(content []byte) (map[string]any, error) {
	if at := notUTF8(content); at >= 0 {
		line, column := lineAt(content, at)
		return nil, &SyntaxError{Line: line, Column: column, Err: errors.New("it is not UTF-8")}
	}
	if c.format == tomlFormat {
		return DecodeTOML(content)
	}
	return decodeJSON(content, c.Strict)
}

// verify makes sure that an edit has changed nothing but the entry.
func (c Client) verify(before, after []byte, name string, put bool) error {
	if bytes.Equal(before, after) {
		return nil
	}
	was, err := c.decode(before)
	if err != nil {
		return err
	}
	is, err := c.decode(after)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrByHand, err)
	}
	keys := append(slices.Clone(c.keysIn(before)), name)
	_, has := lookUp(is, keys)
	without(was, keys)
	without(is, keys)
	if has != put || !reflect.DeepEqual(was, is) {
		return ErrByHand
	}
	return nil
}

func lookUp(table map[string]any, keys []string) (any, bool) {
	value, is := table[keys[0]]
	if !is || len(keys) == 1 {
		return value, is
	}
	inner, _ := value.(map[string]any)
	return lookUp(inner, keys[1:])
}

// without takes an entry out, and the tables that hold nothing then.
func without(table map[string]any, keys []string) {
	if len(keys) == 1 {
		delete(table, keys[0])
		return
	}
	inner, ok := table[keys[0]].(map[string]any)
	if ok {
		without(inner, keys[1:])
	}
	if len(inner) == 0 && (ok || table[keys[0]] == nil) {
		delete(table, keys[0])
	}
}

// kindOf names what a value is, for people.
func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case []any, []map[string]any:
		return "an array"
	case string:
		return "a text"
	case bool:
		return "true or false"
	case json.Number, int64, float64:
		return "a number"
	}
	return "something else"
}

// notUTF8 is where the first byte stands that is no part of a character, else -1.
func notUTF8(content []byte) int {
	for at := 0; at < len(content); {
		c, size := utf8.DecodeRune(content[at:])
		if c == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

// lineAt is the line and the column of an offset, from 1.
func lineAt(content []byte, offset int) (line, column int) {
	before := content[:min(max(offset, 0), len(content))]
	return bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}

// splice puts a text in the place of some bytes.
type splice struct {
	from, to int
	text     string
}

// spliced applies splices that do not overlap. Those at one place stay in their order.
func spliced(content []byte, all []splice) []byte {
	slices.SortStableFunc(all, func(a, b splice) int { return a.from - b.from })
	var b bytes.Buffer
	at := 0
	for _, s := range all {
		b.Write(content[at:s.from])
		b.WriteString(s.text)
		at = s.to
	}
	b.Write(content[at:])
	return b.Bytes()
}

// newline is how lines of a configuration end.
func newline(content []byte) string {
	if at := bytes.IndexByte(content, '\n'); at > 0 && content[at-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

package claude

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
)

// maxFront is how many bytes of front matter are read. The longest seen, with three
// examples in its description, has 4 KiB.
const maxFront = 64 << 10

// fault says where a file is wrong.
func fault(path string, line int, format string, args ...any) error {
	return &parse.Error{Path: path, Line: line, Reason: fmt.Sprintf(format, args...)}
}

// front is the front matter of a file: what it says under which key, in its order.
type front struct {
	fields []field
	// loose says that it was read line by line, as it is no YAML.
	loose bool
}

// field is what stands under a key.
type field struct {
	key  string
	line int // in the file, from 1
	text string
	list []string
	// shape is what the value is.
	shape shape
}

type shape int

const (
	isText    shape = iota
	isList          // of texts
	isOther         // something nested
	isNothing       // the key alone, or null
)

// get returns the field of the first of the keys that is there.
func (f front) get(keys ...string) (field, bool) {
	for _, key := range keys {
		for _, one := range f.fields {
			if one.key == key {
				return one, true
			}
		}
	}
	return field{}, false
}

// file is a file taken apart.
type file struct {
	front front
	body  string
	line  int // of the body, from 1
}

// read takes a file apart.
func read(path string, src []byte) (file, error) {
	text, err := textOf(path, src)
	if err != nil {
		return file{}, err
	}
	matter, body, line, err := split(path, text)
	if err != nil {
		return file{}, err
	}
	f := file{body: body, line: line}
	if f.front, err = readFront(path, matter); err != nil {
		return file{}, err
	}
	return f, nil
}

// textOf is the text of a file with LF line ends and without a byte order mark.
func textOf(path string, src []byte) (string, error) {
	src = bytes.TrimPrefix(src, []byte("\xef\xbb\xbf"))
	if len(src) > parse.MaxBytes {
		return "", fault(path, 1, "the file has %d bytes; an item may have %d", len(src), parse.MaxBytes)
	}
	if at := badText(src); at >= 0 {
		return "", fault(path, 1+bytes.Count(src[:at], []byte("\n")), "the text is not valid UTF-8, or has a NUL byte")
	}
	return strings.ReplaceAll(string(src), "\r\n", "\n"), nil
}

// badText is where a text stops being one; -1 where it does not.
func badText(src []byte) int {
	for i := 0; i < len(src); {
		r, size := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && size <= 1 || r == 0 {
			return i
		}
		i += size
	}
	return -1
}

// split cuts the front matter off a text. A text without any is all body; one whose
// front matter is never closed is an error, for what it asks for is not known.
func split(path, text string) (matter, body string, line int, err error) {
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t") != fence {
		return "", text, 1, nil
	}
	line = 2
	for offset := 0; offset < len(rest) && offset <= maxFront; {
		row, _, _ := strings.Cut(rest[offset:], "\n")
		next := min(offset+len(row)+1, len(rest))
		line++
		if strings.TrimRight(row, " \t") == fence {
			return rest[:offset], rest[next:], line, nil
		}
		offset = next
	}
	if len(rest) > maxFront {
		return "", "", 0, fault(path, 1, "the front matter that begins here does not end within %d KiB", maxFront>>10)
	}
	return "", "", 0, fault(path, 1, "the front matter that begins here never ends: a line with --- closes it")
}

const fence = "---"

// firstLine is where front matter begins in its file.
const firstLine = 2

// readFront reads front matter as YAML and, where it is none, line by line.
func readFront(path, matter string) (front, error) {
	if at := strings.IndexFunc(matter, breaks); at >= 0 {
		return front{}, fault(path, firstLine+strings.Count(matter[:at], "\n"),
			"the front matter has a character that ends a line for some readers and is not seen by others")
	}
	f, isYAML, err := readYAML(path, matter)
	if err != nil {
		return front{}, err
	}
	if !isYAML {
		f = readLines(matter)
		f.loose = true
	}
	return f, f.checkTwice(path)
}

// breaks are control characters, and what YAML takes for line breaks while people see
// none: a key could hide behind one.
func breaks(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f || r == '\u2028' || r == '\u2029'
}

// checkTwice refuses front matter that says a thing twice: programs differ in which of
// the two they take.
func (f front) checkTwice(path string) error {
	seen := map[string]int{}
	for _, one := range f.fields {
		if line, twice := seen[one.key]; twice {
			return fault(path, one.line, "%s already stands on line %d", item.Shown(one.key), line)
		}
		seen[one.key] = one.line
	}
	return nil
}

// readYAML reads front matter that is a YAML mapping. Anchors, aliases, merge keys and
// tags are refused: nobody needs them here, and they can say what is not seen.
func readYAML(path, matter string) (f front, isYAML bool, err error) {
	var doc yaml.Node
	decoder := yaml.NewDecoder(strings.NewReader(matter))
	if err := decoder.Decode(&doc); err != nil {
		return front{}, errors.Is(err, io.EOF), nil
	}
	if !errors.Is(decoder.Decode(new(yaml.Node)), io.EOF) { // a second document would be read by some and not by others
		return front{}, false, nil
	}
	if len(doc.Content) == 0 {
		return front{}, true, nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return front{}, false, nil
	}
	if n := tricky(&doc); n != nil {
		return front{}, false, fault(path, n.Line+firstLine-1, "the front matter has an anchor, an alias, a merge key or a tag, which are not read here")
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			return front{}, false, fault(path, key.Line+firstLine-1, "a key of the front matter is no text")
		}
		one := valueOf(value)
		one.key, one.line = key.Value, key.Line+firstLine-1
		f.fields = append(f.fields, one)
	}
	return f, true, nil
}

// tricky is the first node that is more than the text it shows; nil for none. Aliases
// are not followed, so that the walk is as long as the text.
func tricky(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 || n.Tag == "!!merge" {
		return n
	}
	for _, child := range n.Content {
		if found := tricky(child); found != nil {
			return found
		}
	}
	return nil
}

func valueOf(n *yaml.Node) field {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return field{shape: isNothing}
	case n.Kind == yaml.ScalarNode:
		return field{text: strings.TrimSpace(n.Value)}
	case n.Kind != yaml.SequenceNode:
		return field{shape: isOther}
	}
	one := field{shape: isList}
	for _, child := range n.Content {
		if child.Kind != yaml.ScalarNode || child.Tag == "!!null" {
			return field{shape: isOther}
		}
		one.list = append(one.list, strings.TrimSpace(child.Value))
	}
	return one
}

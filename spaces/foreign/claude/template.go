package claude

import (
	"strconv"
	"strings"
)

// PartKind is what a part of a command's text is.
type PartKind int

// The kinds.
const (
	PartText      PartKind = iota
	PartArguments          // $ARGUMENTS: all of them, as they were given
	PartWord               // $1, $ARGUMENTS[0]: one of them
	PartFolder             // ${CLAUDE_SKILL_DIR}
	PartShell              // !`command`, whose text has parts itself
	PartFile               // @path, whose text has parts itself
)

// Part is a part of a command's text. Values are put into parts and never read again,
// so that nothing in them becomes a command or a file.
type Part struct {
	Kind  PartKind
	Text  string // as it is written
	Word  int    // of PartWord, from 0
	Inner []Part // of PartShell and PartFile
}

// Parse takes the text of a command or a skill apart. $1 is the first argument, as in
// the files that were written before Claude Code began to count at 0; where a text has
// $0 or $ARGUMENTS[, it counts at 0. A backslash before a dollar keeps it.
func Parse(text string) []Part {
	p := &parser{first: 1}
	if strings.Contains(text, "$0") || strings.Contains(text, "$ARGUMENTS[") {
		p.first = 0
	}
	return p.parts(text, true)
}

type parser struct {
	first  int  // the number of the first argument
	fenced bool // within a block of code, where @ means something else
}

// parts reads a text. Outer is false within a command or a path.
func (p *parser) parts(text string, outer bool) []Part {
	var parts []Part
	start := 0
	for i := 0; i < len(text); {
		part, n := p.part(text, i, outer)
		if n == 0 {
			i++
			continue
		}
		if start < i {
			parts = append(parts, Part{Text: text[start:i]})
		}
		parts = append(parts, part)
		i += n
		start = i
	}
	if start < len(text) {
		parts = append(parts, Part{Text: text[start:]})
	}
	return parts
}

// part reads what begins at an offset; n is 0 where that is plain text.
func (p *parser) part(text string, at int, outer bool) (part Part, n int) {
	rest := text[at:]
	if strings.HasPrefix(rest, "```") && (at == 0 || text[at-1] == '\n') {
		p.fenced = !p.fenced
	}
	switch {
	case strings.HasPrefix(rest, `\$`) && len(rest) > 2 && (rest[2] == 'A' || isDigit(rest[2])):
		return Part{Text: "$"}, 2
	case rest[0] == '$':
		return p.dollar(rest)
	case outer && strings.HasPrefix(rest, "!`") && atWord(text, at):
		command, _, closed := strings.Cut(rest[2:], "`")
		if !closed || strings.TrimSpace(command) == "" || strings.Contains(command, "\n") {
			return Part{}, 0
		}
		return Part{Kind: PartShell, Text: rest[:len(command)+3], Inner: p.parts(command, false)}, len(command) + 3
	case outer && !p.fenced && rest[0] == '@' && (at == 0 || strings.IndexByte(" \t\n", text[at-1]) >= 0):
		path := pathOf(rest[1:])
		if path == "" {
			return Part{}, 0
		}
		return Part{Kind: PartFile, Text: rest[:1+len(path)], Inner: p.parts(path, false)}, 1 + len(path)
	}
	return Part{}, 0
}

// dollar reads a place for arguments.
func (p *parser) dollar(rest string) (Part, int) {
	const all, folder = "$ARGUMENTS", "${CLAUDE_SKILL_DIR}"
	if strings.HasPrefix(rest, folder) {
		return Part{Kind: PartFolder, Text: folder}, len(folder)
	}
	if after, ok := strings.CutPrefix(rest, all); ok {
		inner, _, closed := strings.Cut(after[:min(len(after), 4)], "]") // two digits at most
		if digits, indexed := strings.CutPrefix(inner, "["); indexed && closed {
			if word, ok := number(digits); ok {
				text := all + inner + "]"
				return Part{Kind: PartWord, Text: text, Word: word}, len(text)
			}
		}
		if after != "" && isNameByte(after[0]) {
			return Part{}, 0
		}
		return Part{Kind: PartArguments, Text: all}, len(all)
	}
	n := 1
	for n < len(rest) && isDigit(rest[n]) {
		n++
	}
	word, ok := number(rest[1:n])
	if !ok || word < p.first || n < len(rest) && isNameByte(rest[n]) {
		return Part{}, 0
	}
	return Part{Kind: PartWord, Text: rest[:n], Word: word - p.first}, n
}

// number reads the index of an argument, which has two digits at most: $100 is money.
func number(digits string) (int, bool) {
	n, err := strconv.Atoi(digits)
	return n, err == nil && len(digits) <= 2 && n >= 0
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isNameByte(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

// atWord reports whether a word begins at an offset.
func atWord(text string, at int) bool {
	return at == 0 || strings.IndexByte(" \t\n([\"'>:,", text[at-1]) >= 0
}

// pathOf is the path that a text begins with: one with a slash or a dot in it, so that
// a name of somebody or of a decorator is none, or a place for an argument.
func pathOf(text string) string {
	end := strings.IndexFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n`\"'()[]{}<>,;|*?!&", r) })
	if strings.HasPrefix(text, "${") {
		return ""
	}
	if end >= 0 {
		text = text[:end]
	}
	text = strings.TrimRight(text, ".:")
	if text == "" || !strings.ContainsAny(text, "./$") || strings.HasPrefix(text, "@") {
		return ""
	}
	return text
}

// Values are what is put into a text.
type Values struct {
	Arguments string
	Folder    string // of a skill
}

// Fill puts values into a text, in which commands and files stay as they are written.
func (v Values) Fill(parts []Part) string {
	words := Words(v.Arguments)
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(v.one(p, words))
	}
	return b.String()
}

func (v Values) one(p Part, words []string) string {
	switch p.Kind {
	case PartText:
	case PartArguments:
		return v.Arguments
	case PartWord:
		if p.Word < len(words) {
			return words[p.Word]
		}
	case PartFolder:
		if v.Folder != "" {
			return v.Folder
		}
	case PartShell:
		return "!`" + v.Fill(p.Inner) + "`"
	case PartFile:
		return "@" + v.Fill(p.Inner)
	}
	return p.Text
}

// Placed reports whether a text has a place for arguments.
func Placed(parts []Part) bool {
	for _, p := range parts {
		if p.Kind == PartArguments || p.Kind == PartWord || Placed(p.Inner) {
			return true
		}
	}
	return false
}

// Words are the words of arguments; one in quotes can have blanks in it.
func Words(arguments string) []string {
	var words []string
	var word strings.Builder
	quote, open := rune(0), false
	for _, r := range arguments {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\'') && !open:
			quote, open = r, true
		case quote == 0 && (r == ' ' || r == '\t' || r == '\n'):
			if open {
				words = append(words, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteRune(r)
			open = true
		}
	}
	if open {
		words = append(words, word.String())
	}
	return words
}

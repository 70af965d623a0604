package postgres

import (
	"strconv"
	"strings"
	"sync"
)

// translation is the statements of sqlstore in PostgreSQL's form: parameters are numbered
// $1, $2 … and SQLite's choice of an index is left out. It is safe for concurrent use.
type translation struct {
	mu   sync.RWMutex
	done map[string]string
}

// mostTranslated bounds what is remembered. The statements of a program are few; only
// filters of lists make new ones.
const mostTranslated = 1000

func (t *translation) of(query string) string {
	t.mu.RLock()
	text, ok := t.done[query]
	t.mu.RUnlock()
	if ok {
		return text
	}
	text = translate(query)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done == nil || len(t.done) >= mostTranslated {
		t.done = make(map[string]string)
	}
	t.done[query] = text
	return text
}

// translate writes ?3 as $3, a bare ? as the number behind the highest before it, and
// leaves INDEXED BY out. Strings, quoted names and comments stay as they are.
func translate(query string) string {
	var b strings.Builder
	b.Grow(len(query) + 16)
	highest := 0
	for rest := query; rest != ""; {
		size := opaque(rest)
		switch {
		case size > 0:
			b.WriteString(rest[:size])
		case rest[0] == '?':
			size = 1 + digits(rest[1:])
			number, err := strconv.Atoi(rest[1:size])
			if err != nil {
				number = highest + 1
			}
			highest = max(highest, number)
			b.WriteByte('$')
			b.WriteString(strconv.Itoa(number))
		case wordByte(rest[0]):
			size = word(rest)
			if skip := indexedBy(rest); skip > 0 {
				size = skip
				b.WriteByte(' ') // so that what was apart stays so
			} else {
				b.WriteString(rest[:size])
			}
		default:
			size = 1
			b.WriteByte(rest[0])
		}
		rest = rest[size:]
	}
	return b.String()
}

// opaque is the length of the string, quoted name or comment that a text begins with, and
// 0 where it begins with none. One that does not end goes to the end.
func opaque(s string) int {
	switch {
	case s[0] == '\'' || s[0] == '"':
		// A doubled quote ends one and begins the next.
		return through(s, s[:1], 1)
	case strings.HasPrefix(s, "--"):
		return through(s, "\n", 2)
	case strings.HasPrefix(s, "/*"):
		return through(s, "*/", 2)
	}
	return 0
}

// through is the length of s up to the end of the first end at or behind from.
func through(s, end string, from int) int {
	if at := strings.Index(s[from:], end); at >= 0 {
		return from + at + len(end)
	}
	return len(s)
}

// indexedBy is the length of "INDEXED BY name" at the beginning of a text, or 0.
func indexedBy(s string) int {
	at := 0
	for _, want := range []string{"indexed", "by", ""} {
		size := word(s[at:])
		if size == 0 || want != "" && !strings.EqualFold(s[at:at+size], want) {
			return 0
		}
		at += size
		if want != "" {
			at += len(s[at:]) - len(strings.TrimLeft(s[at:], " \t\r\n"))
		}
	}
	return at
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// word is the length of the word that a text begins with.
func word(s string) int {
	size := 0
	for size < len(s) && wordByte(s[size]) {
		size++
	}
	return size
}

func digits(s string) int {
	size := 0
	for size < len(s) && s[size] >= '0' && s[size] <= '9' {
		size++
	}
	return size
}

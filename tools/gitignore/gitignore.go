// Package gitignore decides which files git would leave alone, by the rules of
// gitignore(5). It is given the files of patterns and reads nothing itself. The cost
// of a decision is bounded by the product of pattern and path, whatever the pattern.
package gitignore

import (
	"bytes"
	"strings"
)

// Bounds of one file of patterns; what is beyond them does not count.
const (
	// MaxBytes is how large it may be.
	MaxBytes  = 256 << 10
	maxLines  = 5_000
	maxLength = 1_000 // of a pattern
)

// File is what one file of patterns says.
type File struct {
	base     string // the folder that it stands in, relative to the repository; empty for its top
	patterns []pattern
}

type pattern struct {
	prefix   string   // before the first wildcard, of an anchored one
	segments []string // the rest, between slashes; empty for none
	literal  bool     // there is one, without wildcards
	negated  bool
	dirOnly  bool
	anchored bool // it is about the whole path, not about the last name
}

// Parse reads patterns. Base is the folder that they are relative to: a path with
// slashes from the top of the repository, empty for the top itself.
func Parse(base string, data []byte) *File {
	f := &File{base: base}
	data = bytes.TrimPrefix(data[:min(len(data), MaxBytes)], []byte("\ufeff"))
	lines := 0
	for line := range strings.Lines(string(data)) {
		if lines++; lines > maxLines {
			break
		}
		if p, ok := parseLine(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")); ok {
			f.patterns = append(f.patterns, p)
		}
	}
	return f
}

func parseLine(line string) (p pattern, ok bool) {
	line = trimSpaces(line)
	if line == "" || line[0] == '#' || len(line) > maxLength {
		return p, false
	}
	line, p.negated = strings.CutPrefix(line, "!")
	line, p.dirOnly = strings.CutSuffix(line, "/")
	if line == "" {
		return p, false
	}
	p.anchored = strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if p.anchored {
		wild := strings.IndexAny(line, special)
		if wild < 0 {
			wild = len(line)
		}
		p.prefix, line = line[:wild], line[wild:]
	}
	if line != "" {
		p.segments = strings.Split(line, "/")
	}
	for i, segment := range p.segments {
		if len(segment) > 2 && strings.Trim(segment, "*") == "" {
			p.segments[i] = "**"
		}
	}
	p.literal = !p.anchored && !strings.ContainsAny(line, special)
	return p, true
}

// special are the bytes that may not mean themselves.
const special = `*?[\`

// trimSpaces takes away the spaces at the end that no backslash keeps.
func trimSpaces(line string) string {
	end := len(line)
	for end > 0 && line[end-1] == ' ' {
		backslashes := 0
		for i := end - 2; i >= 0 && line[i] == '\\'; i-- {
			backslashes++
		}
		if backslashes%2 == 1 {
			break
		}
		end--
	}
	return line[:end]
}

// Chain are the files of patterns that are about a folder, the outermost first.
type Chain []*File

// Ignored reports whether a file or folder is ignored, by a path with slashes from
// the top of the repository. Files below an ignored folder are ignored too, which is
// for the caller to see.
func (c Chain) Ignored(rel string, dir bool) bool {
	for i := len(c) - 1; i >= 0; i-- {
		if ignored, decided := c[i].decide(rel, dir); decided {
			return ignored
		}
	}
	return false
}

// decide asks the last pattern that matches.
func (f *File) decide(rel string, dir bool) (ignored, decided bool) {
	if f.base != "" {
		below, inside := strings.CutPrefix(rel, f.base+"/")
		if !inside {
			return false, false
		}
		rel = below
	}
	name := rel[strings.LastIndexByte(rel, '/')+1:]
	for i := len(f.patterns) - 1; i >= 0; i-- {
		p := &f.patterns[i]
		if p.dirOnly && !dir {
			continue
		}
		if p.matches(rel, name) {
			return !p.negated, true
		}
	}
	return false, false
}

func (p *pattern) matches(rel, name string) bool {
	switch {
	case p.anchored:
		// As git does: what follows the prefix is a path of its own, so that b**/c is b
		// followed by **/c.
		rest, ok := strings.CutPrefix(rel, p.prefix)
		if !ok || len(p.segments) == 0 {
			return ok && rest == ""
		}
		return matchPath(p.segments, strings.Split(rest, "/"))
	case p.literal:
		return p.segments[0] == name
	default:
		return matchName(p.segments[0], name)
	}
}

// matchPath matches segments; ** stands for any number of them.
func matchPath(pattern, names []string) bool {
	p, n, star, mark := 0, 0, -1, 0
	for n < len(names) {
		switch {
		case p < len(pattern) && pattern[p] == "**":
			if p == len(pattern)-1 {
				return true // it stands for one segment at least
			}
			star, mark = p, n
			p++
			continue
		case p < len(pattern) && matchName(pattern[p], names[n]):
			p, n = p+1, n+1
			continue
		case star >= 0:
			mark++
			p, n = star+1, mark
			continue
		}
		return false
	}
	return p == len(pattern)
}

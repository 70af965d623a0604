package artifact

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// pageChars is the length of a page in characters of JSON. With what stands
// beside it, it stays within what threads and MCP clients give a model whole.
const pageChars = 20_000

// maxMatch is how many characters of a line that matches are shown, a quarter of
// them before the match.
const maxMatch = 500

// lines are the lines of a text with their ends.
func lines(text string) []string { return slices.Collect(strings.Lines(text)) }

func (r *result) lines(text string, in input) error {
	all := lines(text)
	if in.Offset > max(1, len(all)) {
		return pastEnd(in, len(all), unitLines)
	}
	wanted := all[in.Offset-1:]
	if in.Limit > 0 {
		wanted = wanted[:min(len(wanted), in.Limit)]
	}
	shown := 0
	var b strings.Builder
	for room := pageChars; shown < len(wanted); shown++ {
		if room -= tool.JSONSize(wanted[shown]); room < 0 {
			break
		}
		b.WriteString(wanted[shown])
	}
	if shown == 0 && len(wanted) > 0 {
		r.Content = fitting([]rune(wanted[0]))
		r.Note = fmt.Sprintf("line %d is longer than a page; read it with unit characters, from offset %d",
			in.Offset, 1+len([]rune(strings.Join(all[:in.Offset-1], ""))))
		return nil
	}
	r.Content = b.String()
	r.more(in.Offset+shown, len(all), unitLines)
	return nil
}

func (r *result) characters(text string, in input) error {
	all := []rune(text)
	if in.Offset > max(1, len(all)) {
		return pastEnd(in, len(all), unitCharacters)
	}
	wanted := all[in.Offset-1:]
	if in.Limit > 0 {
		wanted = wanted[:min(len(wanted), in.Limit)]
	}
	r.Content = fitting(wanted)
	r.more(in.Offset+len([]rune(r.Content)), len(all), unitCharacters)
	return nil
}

// match shows the lines that match, from the line of the offset on.
func (r *result) match(text string, in input) error {
	pattern, err := regexp.Compile(in.Pattern)
	if err != nil {
		return tool.Faultf(tool.CodeBadArguments, "pattern: %w", err)
	}
	found, room := 0, pageChars
	var b strings.Builder
	for i, line := range lines(text) {
		line = strings.TrimRight(line, "\r\n")
		at := pattern.FindStringIndex(line)
		if i+1 < in.Offset || at == nil {
			continue
		}
		row := fmt.Sprintf("%d:%s\n", i+1, around(line, at[0]))
		if room -= tool.JSONSize(row); room < 0 || in.Limit > 0 && found == in.Limit {
			r.NextOffset = i + 1
			r.Note = fmt.Sprintf("more lines match; go on with offset %d", r.NextOffset)
			break
		}
		found++
		b.WriteString(row)
	}
	r.Content = b.String()
	if found == 0 {
		r.Note = "no line matches"
	}
	return nil
}

// around is a line, or of a long one what stands around byte at.
func around(line string, at int) string {
	before, after := []rune(line[:at]), []rune(line[at:])
	if len(before)+len(after) <= maxMatch {
		return line
	}
	var b strings.Builder
	if cut := len(before) - maxMatch/4; cut > 0 {
		b.WriteString("…")
		before = before[cut:]
	}
	b.WriteString(string(before))
	if room := maxMatch - len(before); len(after) > room {
		return b.String() + string(after[:room]) + "…"
	}
	return b.String() + string(after)
}

// fitting is as much of a text as fits a page.
func fitting(text []rune) string {
	n := min(len(text), pageChars)
	for tool.JSONSize(string(text[:n])) > pageChars {
		n = n * 3 / 4
	}
	return string(text[:n])
}

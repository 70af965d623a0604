package textcalls

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// readCalls is the answer with the calls that stand in its text as blocks of
// their own, in the order they were written. Known says which names are those of
// tools, and quoted which texts are only repeated.
func readCalls(a llm.Response, turn int, known, quoted func(string) bool) llm.Response {
	var blocks []llm.Block
	calls := 0
	for _, b := range a.Blocks {
		if b.Type != llm.TextBlock {
			blocks = append(blocks, b)
			continue
		}
		thoughts, said := cutThoughts(b.Text, a.StopReason == llm.StopMaxTokens)
		for _, part := range behind(thoughts, splitCalls(said, known, quoted)) {
			if part.Type == llm.ToolUseBlock {
				part.ToolCallID = fmt.Sprintf("text_%d_%d", turn, calls)
				calls++
			}
			blocks = append(blocks, part)
		}
	}
	a.Blocks = blocks
	if calls > 0 && a.StopReason == llm.StopEnd {
		a.StopReason = llm.StopToolUse
	}
	return a
}

// cutThoughts divides an answer behind the thoughts that it begins with: what a model writes
// there it does not call. Some templates write the first tag themselves, so that the answer
// has the last one alone, in a line outside of fences. Thoughts that never end are none,
// unless the answer was cut off.
func cutThoughts(text string, cut bool) (thoughts, said string) {
	const tag, endTag = "<think>", "</think>"
	end := strings.Index(text, endTag)
	begun := strings.HasPrefix(strings.TrimSpace(text), tag)
	switch {
	case end < 0 && begun && cut:
		return text, ""
	case end < 0:
		return "", text
	case begun:
		return text[:end+len(endTag)], text[end+len(endTag):]
	}
	for rest := text; rest != ""; {
		if block, isBlock := blockAt(rest); isBlock {
			rest = block.after
			continue
		}
		line, after := cutLine(rest)
		if inside, ends := strings.CutPrefix(strings.TrimLeftFunc(line, unicode.IsSpace), endTag); ends {
			said = inside + after
			return text[:len(text)-len(said)], said
		}
		rest = after
	}
	return "", text
}

// behind are the parts of an answer with its thoughts before them, as text.
func behind(thoughts string, parts []llm.Block) []llm.Block {
	thoughts = strings.TrimSpace(thoughts)
	switch {
	case thoughts == "":
		return parts
	case len(parts) > 0 && parts[0].Type == llm.TextBlock:
		parts[0].Text = thoughts + "\n\n" + parts[0].Text
		return parts
	}
	return append([]llm.Block{{Type: llm.TextBlock, Text: thoughts}}, parts...)
}

// splitCalls divides a text into the calls it contains and the text between
// them. Models that were trained on another form fall back into it, so calls are
// read from fences and <tool_call> tags, and from a text that is nothing but a
// call. A fence within another is shown, not called, and so is what is quoted from a
// result.
func splitCalls(text string, known, quoted func(string) bool) []llm.Block {
	var s splitter
	for rest := text; rest != ""; {
		block, isBlock := blockAt(rest)
		if !isBlock {
			line, after := cutLine(rest)
			s.prose.WriteString(line)
			rest = after
			continue
		}
		if calls := block.calls(known); len(calls) > 0 && !quoted(block.body) {
			s.endProse()
			s.out = append(s.out, calls...)
		} else {
			s.prose.WriteString(rest[:len(rest)-len(block.after)])
		}
		rest = block.after
	}
	s.endProse()
	if bare := strings.TrimSpace(text); len(s.out) == 1 && looksLikeJSON(bare) {
		if calls := (textBlock{body: bare}).calls(known); len(calls) > 0 && !quoted(bare) {
			return calls
		}
	}
	return s.out
}

func looksLikeJSON(text string) bool {
	return strings.HasPrefix(text, "{") && strings.HasSuffix(text, "}") ||
		strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]")
}

// splitter collects the parts of a text.
type splitter struct {
	out   []llm.Block
	prose strings.Builder
}

func (s *splitter) endProse() {
	if text := strings.TrimSpace(s.prose.String()); text != "" {
		s.out = append(s.out, llm.Block{Type: llm.TextBlock, Text: text})
	}
	s.prose.Reset()
}

// textBlock is a part of a text that may be a call.
type textBlock struct {
	info  string // the word behind the fence: json
	body  string
	open  bool   // its end is missing
	after string // the text behind it
}

// blockAt returns the block that text begins with.
func blockAt(text string) (textBlock, bool) {
	line, after := cutLine(text)
	if marks, info := fenceOf(line); marks != "" {
		b := textBlock{info: info}
		b.body, b.after, b.open = fenced(after, marks)
		return b, true
	}
	trimmed := strings.TrimSpace(line)
	if inside, ok := strings.CutPrefix(trimmed, minFence); ok {
		// A whole fence on one line.
		if inside, ok = strings.CutSuffix(inside, minFence); ok && !strings.Contains(inside, "`") {
			return textBlock{body: strings.TrimLeftFunc(inside, unicode.IsLetter), after: after}, true
		}
	}
	const tag, endTag = "<tool_call>", "</tool_call>"
	if !strings.HasPrefix(trimmed, tag) {
		return textBlock{}, false
	}
	_, inside, _ := strings.Cut(text, tag)
	body, after, closed := strings.Cut(inside, endTag)
	return textBlock{info: "tool_call", body: body, open: !closed, after: after}, true
}

// cutLine divides a text after its first line end.
func cutLine(text string) (line, rest string) {
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		return text[:i+1], text[i+1:]
	}
	return text, ""
}

// minFence is the shortest fence (CommonMark 4.5).
const minFence = "```"

// fenceOf is the run of backquotes or tildes of a line that begins or ends a
// fence, and the word after them; empty for any other line.
func fenceOf(line string) (marks, info string) {
	line = strings.TrimSpace(line)
	for _, mark := range []string{"`", "~"} {
		info = strings.TrimLeft(line, mark)
		marks = line[:len(line)-len(info)]
		if len(marks) >= len(minFence) && !strings.Contains(info, "`") {
			return marks, strings.TrimSpace(info)
		}
	}
	return "", ""
}

// fenced divides what comes after the first line of a fence into its content
// and what follows its last line. One that never ends reaches to the end of the
// text.
func fenced(text, marks string) (body, after string, open bool) {
	for rest := text; rest != ""; {
		line, next := cutLine(rest)
		if end, info := fenceOf(line); strings.HasPrefix(end, marks) && info == "" {
			return text[:len(text)-len(rest)], next, false
		}
		rest = next
	}
	return text, "", true
}

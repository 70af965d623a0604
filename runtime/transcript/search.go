package transcript

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Hit is an event in which something was found.
type Hit struct {
	Line    int // of the transcript, from 1
	Type    thread.EventType
	Excerpt string // what was found, with what stands around it
}

// Pattern is what to search for.
type Pattern struct{ re *regexp.Regexp }

const (
	maxPatternBytes = 1000
	// maxPatternSteps bounds the compiled form, by which the time for each byte of a
	// transcript grows; a counted repetition makes much of a short expression.
	maxPatternSteps = 5000
)

// ErrBadPattern is wrapped when something cannot be searched for.
var ErrBadPattern = errors.New("not a pattern to search for")

// NewPattern takes a text, which is found in any case, or a regular expression
// (RE2), which is found as it says.
func NewPattern(query string, isRegexp bool) (*Pattern, error) {
	switch {
	case query == "":
		return nil, fmt.Errorf("%w: it is empty", ErrBadPattern)
	case len(query) > maxPatternBytes:
		return nil, fmt.Errorf("%w: it is longer than %d bytes", ErrBadPattern, maxPatternBytes)
	case !isRegexp:
		query = "(?i)" + regexp.QuoteMeta(query)
	}
	parsed, err := syntax.Parse(query, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadPattern, err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadPattern, err)
	}
	if len(program.Inst) > maxPatternSteps {
		return nil, fmt.Errorf("%w: it repeats too much", ErrBadPattern)
	}
	re, err := regexp.Compile(query)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadPattern, err)
	}
	return &Pattern{re: re}, nil
}

// Search returns the first events of a transcript, at most so many, in one of
// whose strings the pattern is found; member names and numbers are not searched.
// A text that is on record twice is found once: a streamed one only where the whole
// answer is missing, a call in the answer that makes it, and what a thread was
// given of the one before only there. Lines that cannot be read are passed over.
func Search(ctx context.Context, from records.Source, p *Pattern, most int) ([]Hit, error) {
	f, err := from.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	s := searcher{pattern: p, most: most}
	lines := newLineReader(wholeOf(f))
	for len(s.hits) < most {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		e, err := lines.nextEvent()
		switch {
		case err == nil:
			s.add(lines.line, e)
		case errors.Is(err, io.EOF), isTorn(err):
			s.endStream()
			return s.hits, nil
		case !isLineError(err):
			return nil, err
		}
	}
	return s.hits, nil
}

// searcher goes through the events of a transcript.
type searcher struct {
	pattern *Pattern
	most    int
	hits    []Hit
	given   int // messages of the thread before that are still to come

	stream struct { // of an answer that is not whole yet
		line int
		text strings.Builder
	}
}

func (s *searcher) add(line int, e thread.Event) {
	switch e.Type {
	case thread.EventTokenDelta:
		s.gather(line, e)
		return
	case thread.EventToolsOffered, thread.EventCheckpoint, thread.EventCognitionRequest, thread.EventCognitionReasoning, thread.EventToolCallStart:
		return
	case thread.EventCognitionOut:
		s.stream.text.Reset()
	case thread.EventCognitionIn:
		if s.given > 0 {
			s.given--
			return
		}
	case thread.EventThreadContinued:
		// The messages that a copy was given stand nowhere else in its chain.
		if p, err := Decode[ThreadContinued](e); err == nil && p.Via != thread.ViaFork {
			s.given = p.Messages
		}
	case thread.EventRetry, thread.EventMessage:
		s.endStream()
	default:
		if terminal(e.Type) {
			s.endStream()
		}
	}
	if excerpt, found := s.pattern.in(e.Payload); found {
		s.hit(line, e.Type, excerpt)
	}
}

// gather puts the pieces of an answer together, for what is searched may stand in
// two of them.
func (s *searcher) gather(line int, e thread.Event) {
	d, err := Decode[TokenDelta](e)
	if err != nil || d.Type == llm.ToolUseBlock {
		return
	}
	if s.stream.text.Len() == 0 {
		s.stream.line = line
	}
	s.stream.text.WriteString(d.Text)
}

// endStream searches streamed text of which no whole answer follows.
func (s *searcher) endStream() {
	text := s.stream.text.String()
	s.stream.text.Reset()
	if at := s.pattern.re.FindStringIndex(text); at != nil {
		s.hit(s.stream.line, thread.EventTokenDelta, excerpt(text, at[0], at[1]))
	}
}

func (s *searcher) hit(line int, t thread.EventType, excerpt string) {
	if len(s.hits) < s.most {
		s.hits = append(s.hits, Hit{Line: line, Type: t, Excerpt: excerpt})
	}
}

// in looks for the pattern in the strings of a payload, member by member.
func (p *Pattern) in(payload []byte) (string, bool) {
	var value any
	if err := json.Unmarshal(payload, &value); err != nil {
		return "", false
	}
	return p.inValue(value)
}

func (p *Pattern) inValue(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		if at := p.re.FindStringIndex(v); at != nil {
			return excerpt(v, at[0], at[1]), true
		}
	case []any:
		for _, element := range v {
			if found, ok := p.inValue(element); ok {
				return found, true
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if found, ok := p.inValue(v[name]); ok {
				return found, true
			}
		}
	}
	return "", false
}

const (
	excerptAround = 100 // bytes before and after what was found
	excerptMatch  = 300 // most bytes of what was found
)

// excerpt shows what stands from one place of a text to another, on one line.
func excerpt(text string, from, to int) string {
	before, after := "", ""
	start, end := max(0, from-excerptAround), to+excerptAround
	if start > 0 {
		before = "…"
	}
	if to-from > excerptMatch {
		end = from + excerptMatch
	}
	if end < len(text) {
		after = "…"
	}
	shown := strings.ToValidUTF8(text[item.Start(text, start):min(end, len(text))], "")
	return before + strings.Join(strings.Fields(shown), " ") + after
}

package scripted

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// Script is a parsed script.
type Script struct {
	path  string
	turns []turn
}

// Error is a script that cannot be used.
type Error struct {
	Path   string
	Line   int // 0 when unknown
	Reason string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.Path, e.Reason)
	}
	return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Reason)
}

// turn is a rule: which requests it answers, and how.
type turn struct {
	Match      match        `yaml:"match"`
	Times      int          `yaml:"times"`
	Reasoning  text         `yaml:"reasoning"`
	Text       text         `yaml:"text"`
	ToolCalls  []toolCall   `yaml:"tool_calls"`
	StopReason stopReason   `yaml:"stop_reason"`
	Usage      *usage       `yaml:"usage"`
	Delay      duration     `yaml:"delay"`
	CutAfter   *int         `yaml:"cut_after"`
	Hang       bool         `yaml:"hang"`
	Error      *scriptError `yaml:"error"`
	Raw        *rawAnswer   `yaml:"raw"`

	line int
}

// rawAnswer is an answer that keeps to no protocol.
type rawAnswer struct {
	Status   int               `yaml:"status"` // 0: 200
	Headers  map[string]string `yaml:"headers"`
	Body     string            `yaml:"body"`
	CutAfter *int              `yaml:"cut_after"` // bytes of the body
	Hang     bool              `yaml:"hang"`
}

// match is the condition of a turn; an empty one holds for every request.
type match struct {
	First      string  `yaml:"first"`
	FirstRegex pattern `yaml:"first_regex"`
	Last       string  `yaml:"last"`
	LastRegex  pattern `yaml:"last_regex"`
	Turn       int     `yaml:"turn"`
	System     string  `yaml:"system"`
	Model      string  `yaml:"model"`
	Tool       string  `yaml:"tool"`
}

type toolCall struct {
	Name      string `yaml:"name"`
	Input     input  `yaml:"input"`
	InputJSON text   `yaml:"input_json"`
}

type usage struct {
	Input      int64 `yaml:"input_tokens"`
	Output     int64 `yaml:"output_tokens"`
	CacheRead  int64 `yaml:"cache_read_tokens"`
	CacheWrite int64 `yaml:"cache_write_tokens"`
}

type scriptError struct {
	Status     int               `yaml:"status"`
	Type       string            `yaml:"type"`
	Code       string            `yaml:"code"`
	Message    string            `yaml:"message"`
	RetryAfter duration          `yaml:"retry_after"`
	Headers    map[string]string `yaml:"headers"`
	After      *int              `yaml:"after"`
}

// pattern is a regular expression.
type pattern struct{ *regexp.Regexp }

// UnmarshalYAML compiles the expression.
func (p *pattern) UnmarshalYAML(n *yaml.Node) (err error) {
	p.Regexp, err = regexp.Compile(n.Value)
	return at(n, err)
}

// duration is a length of time such as "150ms".
type duration time.Duration

// UnmarshalYAML parses the duration.
func (d *duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := time.ParseDuration(n.Value)
	if err == nil && v < 0 {
		err = fmt.Errorf("duration %s is negative", n.Value)
	}
	*d = duration(v)
	return at(n, err)
}

// stopReason is one of the vendor-neutral stop reasons.
type stopReason llm.StopReason

// UnmarshalYAML checks the reason.
func (s *stopReason) UnmarshalYAML(n *yaml.Node) error {
	switch r := llm.StopReason(n.Value); r {
	case llm.StopEnd, llm.StopToolUse, llm.StopMaxTokens, llm.StopRefusal, llm.StopFailed, llm.StopOther:
		*s = stopReason(r)
		return nil
	}
	return at(n, fmt.Errorf("stop_reason %q is none of end, tool_use, max_tokens, refusal, failed, other", n.Value))
}

// at is err with the line of the node it is about.
func at(n *yaml.Node, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Line: n.Line, Reason: err.Error()}
}

// Parse reads a script; path is for errors only, which are of type *Error.
// Unknown keys, templates and expressions that do not compile and answers that
// contradict themselves are refused.
func Parse(path string, src []byte) (*Script, error) {
	var file struct {
		Turns []turn `yaml:"turns"`
	}
	dec := yaml.NewDecoder(bytes.NewReader(src))
	dec.KnownFields(true)
	if err := dec.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return nil, located(path, err)
	}
	if len(file.Turns) == 0 {
		return nil, &Error{Path: path, Reason: "the script has no turns; write at least one below the key turns"}
	}
	lines := turnLines(src)
	for i := range file.Turns {
		t := &file.Turns[i]
		if i < len(lines) {
			t.line = lines[i]
		}
		if err := t.check(); err != nil {
			return nil, &Error{Path: path, Line: t.line, Reason: err.Error()}
		}
	}
	return &Script{path: path, turns: file.Turns}, nil
}

// turnLines are the lines on which the turns begin. The decoder does not tell
// them where unknown keys are refused.
func turnLines(src []byte) []int {
	var file struct {
		Turns yaml.Node `yaml:"turns"`
	}
	if yaml.Unmarshal(src, &file) != nil {
		return nil
	}
	var lines []int
	for _, n := range file.Turns.Content {
		lines = append(lines, n.Line)
	}
	return lines
}

var (
	linePrefix   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:yaml: )?line (\d+): (.*)$`) })
	unknownField = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^field (.*) not found in type .*$`) })
)

// located gives an error of the YAML library the shape of ours.
func located(path string, err error) error {
	var own *Error
	if errors.As(err, &own) {
		return &Error{Path: path, Line: own.Line, Reason: own.Reason}
	}
	reason := strings.TrimPrefix(err.Error(), "yaml: ")
	var several *yaml.TypeError
	if errors.As(err, &several) && len(several.Errors) > 0 {
		reason = several.Errors[0]
	}
	out := &Error{Path: path, Reason: reason}
	if m := linePrefix().FindStringSubmatch(reason); m != nil {
		out.Line, _ = strconv.Atoi(m[1]) // digits by the expression
		out.Reason = m[2]
	}
	if m := unknownField().FindStringSubmatch(out.Reason); m != nil {
		out.Reason = fmt.Sprintf("unknown key %q", m[1])
	}
	return out
}

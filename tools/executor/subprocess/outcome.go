package subprocess

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/guard"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

const (
	// maxDiagnostics is how much is kept of the end of what a tool writes to its standard
	// error, and shownDiagnostics how much of that, and of its output, a model is told of a failure.
	maxDiagnostics   = 64 << 10
	shownDiagnostics = 2 << 10
)

// output keeps what a tool prints, until it is too much.
type output struct {
	kept []byte
	full func() // called when it is too much
}

func (o *output) Write(p []byte) (int, error) {
	if room := maxOutput - len(o.kept); len(p) > room {
		o.kept = append(o.kept, p[:room]...)
		o.full()
		return len(p), nil
	}
	o.kept = append(o.kept, p...)
	return len(p), nil
}

// outcome is a command that has ended.
type outcome struct {
	id      string
	env     tool.Env
	command process.Command
	result  process.Result
	stdout  []byte
	stderr  string
}

// decode is the result of the tool, or why there is none.
func (o outcome) decode() (any, error) {
	switch {
	case o.result.TimedOut:
		return nil, o.with(tool.Faultf(tool.CodeTimeout, "%s did not end within %v seconds and was stopped", o.id, o.command.Timeout.Seconds()).
			WithHint("Ask for less, or call another tool."))
	case o.result.Cancelled:
		return nil, o.with(tool.Faultf(tool.CodeCancelled, "%s was stopped because the call was cancelled", o.id))
	}
	a, isJSON := readAnswer(o.stdout)
	if o.result.ExitCode != 0 {
		return nil, o.failed(a.value)
	}
	switch {
	case isJSON && len(a.before) > 0:
		return a, nil
	case isJSON:
		return a.value, refusal(o.id, a.value)
	}
	if guard.IsBinary(o.stdout) {
		return nil, o.with(tool.Faultf(tool.CodeToolFailed, "%s answered with %d bytes that are neither JSON nor text (%s)", o.id, len(o.stdout), guard.MediaType(o.stdout)))
	}
	return printed(o.stdout), nil
}

// printed is the result of a tool that answers in text; nil when it says nothing.
func printed(out []byte) any {
	text := strings.ToValidUTF8(strings.TrimRight(string(out), "\r\n"), "\uFFFD")
	if text == "" {
		return nil
	}
	return text
}

// failed is the fault of a tool that did not end well.
func (o outcome) failed(answer any) *tool.Fault {
	how := fmt.Sprintf("ended with exit code %d", o.result.ExitCode)
	if o.result.Signal != "" {
		how = "was ended by " + o.result.Signal
	}
	if f := refusal(o.id, answer); f != nil {
		return o.with(tool.AsFault(f))
	}
	why := lastLine(o.env.Masked(o.stderr))
	if why == "" {
		why = lastLine(o.env.Masked(string(bytes.ToValidUTF8(o.stdout, []byte("\uFFFD")))))
	}
	if why != "" {
		why = ": " + why
	}
	f := tool.Faultf(tool.CodeToolFailed, "%s %s%s", o.id, how, why)
	if answer != nil {
		f = f.With("data", answer)
	}
	return o.with(f)
}

// printedEnd is the end of what the tool printed, as far as it is text.
func (o outcome) printedEnd() string {
	if guard.IsBinary(o.stdout) {
		return ""
	}
	return end(o.env.Masked(strings.ToValidUTF8(string(o.stdout), "\uFFFD"))) // masked before it is cut
}

func (o outcome) tooLong() *tool.Fault {
	return o.with(tool.Faultf(tool.CodeToolFailed, "%s printed more than %d bytes and was stopped", o.id, maxOutput).
		WithHint("Ask it for less; a tool with a large result writes a file and answers with its path."))
}

// with adds what is known of the end of the process.
func (o outcome) with(f *tool.Fault) *tool.Fault {
	f = f.With("exit_code", o.result.ExitCode).With("duration_ms", o.result.Duration.Milliseconds())
	if o.result.Signal != "" {
		f = f.With("signal", o.result.Signal)
	}
	if end := end(o.env.Masked(o.stderr)); end != "" { // masked before it is cut
		f = f.With("stderr", end)
	}
	if end := o.printedEnd(); end != "" && f.Details["data"] == nil {
		f = f.With("stdout", end)
	}
	return f
}

// end is the end of diagnostics, from the beginning of a line.
func end(text string) string {
	text = strings.TrimSpace(text)
	if len(text) <= shownDiagnostics {
		return text
	}
	text = item.End(text, shownDiagnostics)
	if _, rest, ok := strings.Cut(text, "\n"); ok {
		text = rest
	}
	return "… " + text
}

// lastLine is the last line that says something, shortened.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	line := strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
	if strings.HasPrefix(line, "Node.js v") { // which stands below what nobody caught, and its stack
		if thrown := nodeThrown().FindAllStringSubmatch(text, -1); len(thrown) > 0 {
			line = thrown[len(thrown)-1][1]
		}
	}
	return guard.Shorten(line, 400, "the rest is left out")
}

// nodeThrown matches the line that says what a program for Node has thrown: the first one below
// the mark of the place.
var nodeThrown = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^\s*\^+\s*$\s*^(.*\S)`) })

// refusal is the fault of a tool that answers {"success": false, …}; nil otherwise.
func refusal(id string, answer any) error {
	object, ok := answer.(map[string]any)
	if success, said := object["success"].(bool); !ok || !said || success {
		return nil
	}
	why, _ := object["error"].(string)
	if why == "" {
		why, _ = object["message"].(string)
	}
	if why == "" {
		why = "it says that it did not succeed"
	}
	return tool.Faultf(tool.CodeToolFailed, "%s failed: %s", id, why).With("data", object)
}

func inText(value any) string {
	if s, ok := value.(string); ok {
		return s
	}
	raw, err := json.Marshal(value)
	if err != nil || value == nil {
		return ""
	}
	return string(raw)
}

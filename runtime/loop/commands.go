package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/opening"
	"github.com/rye-mcp/rye-mcp/runtime/prompt"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/foreign/claude"
	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/executor"
	"github.com/rye-mcp/rye-mcp/tools/palette"
	"github.com/rye-mcp/rye-mcp/tools/shellline"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// The tools that the text of another program's command uses.
const (
	shellID    = "rye/bash"
	readFileID = "rye/file-system/read"
)

// maxCommands is how many commands, and how many files, of one text are seen to.
const maxCommands = 20

// filler is the filling of one text.
type filler struct {
	*run
	values   claude.Values
	commands int
	files    []string
	texts    []string // of the files
}

// fill runs the commands that the text of another program's command names
// (!`…`), and reads its files (@path), as calls of this thread, and puts what they
// give into the first message. A thread that continues another has had them.
func (f *filler) fill(ctx context.Context, first *opening.Prompts) error {
	doc := f.task.doc
	if doc.Syntax != item.SyntaxDollar || f.meta.Continuation != nil {
		return nil
	}
	f.values = inputs.DollarValues(doc, f.meta.Inputs)
	parts := claude.Parse(doc.Body)
	for i, p := range parts {
		if p.Kind == claude.PartFile {
			f.attach(ctx, f.values.Fill(p.Inner))
		}
		if p.Kind != claude.PartShell {
			continue
		}
		text, err := f.output(ctx, p)
		if err != nil {
			return err
		}
		parts[i] = claude.Part{Text: text}
	}
	if f.commands == 0 && len(f.files) == 0 {
		return nil
	}
	body := strings.Join(append([]string{f.values.Fill(parts)}, f.texts...), "\n\n")
	first.Directive = prompt.TaskOf(doc, f.meta.Inputs, f.Env, body)
	return nil
}

// output runs one command.
func (f *filler) output(ctx context.Context, p claude.Part) (string, error) {
	if f.commands++; f.commands > maxCommands {
		return "", tool.Faultf(tool.CodeUnsupported, "the text of %s has more than %d commands", f.meta.Directive, maxCommands)
	}
	line, err := commandLine(f.values, p.Inner)
	if err != nil {
		return "", tool.Faultf(tool.CodeBadArguments, "an argument cannot stand in the command %s: %w", p.Text, err)
	}
	text, err := f.printed(ctx, line)
	if err != nil {
		return "", fmt.Errorf("the command %s of the text of %s: %w", p.Text, f.meta.Directive, err)
	}
	f.injected(shellID, line, text)
	return fenced("output", "command", line, text), nil
}

// printed is what a command prints, bounded.
func (f *filler) printed(ctx context.Context, line string) (string, error) {
	if f.Recorded != nil {
		return f.Recorded.Injected(shellID, line)
	}
	result, err := f.callTool(ctx, shellID, map[string]any{"command": line})
	if err != nil {
		return "", err
	}
	return f.bounded(shellText(result)), nil
}

// attach reads one file. The text stands as it was written where there is none, or none
// for this thread.
func (f *filler) attach(ctx context.Context, path string) {
	for _, before := range f.files {
		if before == path {
			return
		}
	}
	if len(f.files) == maxCommands {
		return
	}
	text, err := f.contentOf(ctx, path)
	if err != nil {
		f.Log.Debug().Err(err).Msg("a file that the text names is not read")
		return
	}
	f.files = append(f.files, path)
	f.texts = append(f.texts, fenced("file", "path", path, text))
	f.injected(readFileID, path, text)
}

// contentOf is what a file says, bounded.
func (f *filler) contentOf(ctx context.Context, path string) (string, error) {
	if f.Recorded != nil {
		return f.Recorded.Injected(readFileID, path)
	}
	result, err := f.callTool(ctx, readFileID, map[string]any{"path": path})
	if err != nil {
		return "", err
	}
	var read struct {
		Content string `json:"content"`
	}
	if err := decode(result, &read); err != nil {
		return "", err
	}
	return f.bounded(read.Content), nil
}

// callTool calls a tool as the model of this thread would.
func (f *filler) callTool(ctx context.Context, id string, args map[string]any) (any, error) {
	if err := f.allow(palette.Required(id)); err != nil {
		return nil, err
	}
	text, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	return f.await(ctx, id, func() (any, error) {
		return f.Executor.RunItem(ctx, f.Resolver, id, executor.Call{Env: f.env(), Args: text, Secrets: f.secrets(), Warn: f.warn})
	})
}

// injected puts on record what has become part of the first message.
func (f *filler) injected(id, of, text string) {
	f.record(thread.EventContextInjected, transcript.ContextInjected{
		ItemID: id, Position: "body", Directive: f.meta.Directive, Bytes: len(text), Text: text, Of: of,
	})
}

// commandLine is a command with its arguments in it, each of them a word, or a part of
// one, and nothing that the shell would read.
func commandLine(values claude.Values, parts []claude.Part) (string, error) {
	var line shellline.Line
	words := claude.Words(values.Arguments)
	for _, p := range parts {
		switch {
		case p.Kind == claude.PartArguments:
			line.Words(words)
		case p.Kind == claude.PartWord && p.Word < len(words):
			line.Value(words[p.Word])
		case p.Kind == claude.PartWord:
			line.Value("")
		case p.Kind == claude.PartFolder && values.Folder != "":
			line.Value(values.Folder)
		default:
			line.Text(p.Text)
		}
	}
	return line.Finish()
}

// shellText is what a command printed, and how it failed when it did.
func shellText(result any) string {
	var printed struct {
		ExitCode int    `json:"exit_code"`
		Stdout   string `json:"stdout"`
		Stderr   string `json:"stderr"`
		TimedOut bool   `json:"timed_out"`
	}
	if decode(result, &printed) != nil {
		return encode(result)
	}
	text := strings.TrimRight(printed.Stdout, "\n")
	if stderr := strings.TrimSpace(printed.Stderr); stderr != "" {
		text = strings.TrimLeft(text+"\n"+stderr, "\n")
	}
	switch {
	case printed.TimedOut:
		text += "\n[it took too long and was stopped]"
	case printed.ExitCode != 0:
		text += fmt.Sprintf("\n[exit code %d]", printed.ExitCode)
	}
	return strings.TrimLeft(text, "\n")
}

// decode reads the result of a tool.
func decode(result, to any) error {
	text, err := json.Marshal(result)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// fenced is a text that somebody else wrote, in an element that it cannot end.
func fenced(element, attribute, value, text string) string {
	value = strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;", ">", "&gt;", "\n", " ").Replace(value)
	return fmt.Sprintf("<%s %s=\"%s\">\n%s\n</%s>", element, attribute, value, strings.ReplaceAll(text, "</"+element, `<\/`+element), element)
}

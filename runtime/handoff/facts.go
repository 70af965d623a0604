package handoff

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/tools/builtin/artifact"
	"github.com/rye-mcp/rye-mcp/tools/palette"
)

// Facts are what the transcripts of a chain say about what was made.
type Facts struct {
	// Files are the paths written through tools, as the model gave them but cleaned,
	// each once, in the order in which they were last written.
	Files []string
	// Said are the instructions that the threads were given while they worked, oldest first.
	Said []Said
	// Noted is what the threads wrote into the memory of the project, oldest first.
	Noted []Noted
	// tools are the names of the tools by the references of their artifacts.
	tools map[string]string
}

// Said is an instruction, and who has given it.
type Said struct {
	From thread.Sender
	Text string
}

// Noted is an entry for the memory of the project.
type Noted struct {
	Kind  string `json:"kind"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

// FactsOf reads the transcripts of a chain, the first thread's first. Those that
// are not there, and lines that cannot be read, are passed over.
func FactsOf(transcripts ...records.Source) (Facts, error) {
	f := Facts{tools: map[string]string{}}
	for _, said := range transcripts {
		if err := f.read(said); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Facts{}, err
		}
	}
	return f, nil
}

// Artifact describes the artifact that lies in a file of that name and size.
func (f Facts) Artifact(file string, bytes int64) Artifact {
	ref := artifact.Ref(strings.TrimSuffix(file, path.Ext(file)))
	return Artifact{Ref: ref, Bytes: bytes, Tool: f.tools[ref]}
}

func (f *Facts) read(said records.Source) error {
	open := map[string]transcript.ToolCallStart{} // calls of this thread by their id
	for e, err := range transcript.Events(said) {
		if err != nil {
			if unreadable(err) {
				continue
			}
			return err
		}
		switch e.Type {
		case thread.EventMessage:
			if m, err := transcript.Decode[transcript.Message](e); err == nil && m.Kind == thread.Steer {
				f.Said = append(f.Said, Said{From: m.From, Text: m.Text()})
			}
		case thread.EventToolCallStart:
			if start, err := transcript.Decode[transcript.ToolCallStart](e); err == nil {
				open[start.CallID] = start
			}
		case thread.EventToolCallResult:
			if result, err := transcript.Decode[transcript.ToolCallResult](e); err == nil {
				f.add(open[result.CallID], result)
			}
		}
	}
	return nil
}

// unreadable reports whether an error is about one line only.
func unreadable(err error) bool {
	_, line := errors.AsType[*transcript.LineError](err)
	_, torn := errors.AsType[*transcript.TornError](err)
	return line || torn
}

func (f *Facts) add(call transcript.ToolCallStart, result transcript.ToolCallResult) {
	for _, found := range artifactNames().FindAllStringSubmatch(result.Text, -1) {
		f.tools[found[1]] = result.Tool
	}
	for _, image := range result.Images {
		f.tools[artifact.Ref(image.Ref)] = result.Tool
	}
	if result.IsError {
		return
	}
	if n, is := notedBy(call); is {
		f.Noted = append(f.Noted, n)
	}
	for _, written := range filesOf(call) {
		f.Files = append(slices.DeleteFunc(f.Files, func(earlier string) bool { return earlier == written }), written)
	}
}

// artifactNames finds the references that shortened results give.
var artifactNames = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bartifact ([0-9a-f]{16})\b`) })

// noteID is the tool that writes into the memory of the project.
const noteID = "rye/memory/write"

// notedBy is what a call notes, by its input.
func notedBy(call transcript.ToolCallStart) (n Noted, is bool) {
	input, is := inputOf(call, noteID)
	if !is || json.Unmarshal(input, &n) != nil || n.Title == "" && n.Text == "" {
		return Noted{}, false
	}
	return n, true
}

// Tools that write files; both take the path in their parameter "path", the first
// also several in "files".
const (
	writeID = "rye/file-system/write"
	editID  = "rye/file-system/edit_lines"
)

// executeName is what a model calls the action that runs any tool.
const executeName = "rye_execute"

// inputOf is the input of one of some tools that a call runs by itself or by the action
// which runs any tool.
func inputOf(call transcript.ToolCallStart, tools ...string) (input []byte, is bool) {
	input = []byte(call.Input)
	if call.Tool != executeName {
		return input, slices.ContainsFunc(tools, func(id string) bool { return call.Tool == palette.FlatName(id) })
	}
	var execute struct {
		ItemID     string          `json:"item_id"`
		Parameters json.RawMessage `json:"parameters"`
		DryRun     bool            `json:"dry_run"`
	}
	if json.Unmarshal(input, &execute) != nil || execute.DryRun || !slices.Contains(tools, execute.ItemID) {
		return nil, false
	}
	return execute.Parameters, true
}

// filesOf are the files that a call writes, by its input.
func filesOf(call transcript.ToolCallStart) []string {
	input, is := inputOf(call, writeID, editID)
	if !is {
		return nil
	}
	type target struct {
		Path string `json:"path"`
	}
	var in struct {
		target
		Files []target `json:"files"`
	}
	if json.Unmarshal(input, &in) != nil {
		return nil
	}
	var files []string
	for _, t := range append(in.Files, in.target) {
		if t.Path != "" {
			files = append(files, path.Clean(t.Path))
		}
	}
	return files
}

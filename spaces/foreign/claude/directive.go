package claude

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Inputs of these directives.
const (
	InputPrompt    = "prompt"    // of an agent: what it is to do
	InputArguments = "arguments" // of commands and skills: what follows their name
)

// Source is a file that is read as a directive.
type Source struct {
	Path    string // for errors
	ID      string // of the item
	Content []byte
	// Folder is where the files of a skill lie, and Files are their names in it, without
	// SKILL.md.
	Folder string
	Files  []string
}

// Directive reads a file as the directive that it is here. Errors are *parse.Error.
// Unknown has the parts of the file without a counterpart.
func Directive(s Source) (*item.DirectiveDoc, error) {
	form, ok := FormOf(s.ID)
	if !ok {
		return nil, fault(s.Path, 1, "it is no agent, command or skill")
	}
	f, err := read(s.Path, s.Content)
	if err != nil {
		return nil, err
	}
	doc := &item.DirectiveDoc{Name: path.Base(s.ID), Category: "claude", Line: 1, Body: strings.TrimSpace(f.body)}
	if doc.Body == "" {
		return nil, fault(s.Path, f.line, "there is no text below the front matter")
	}
	readTexts(doc, f.front)
	readPermissions(doc, f.front)
	readModel(doc, f.front)
	readTurns(doc, f.front)
	readBackground(doc, f.front)
	readIsolation(doc, f.front)
	noteServers(doc, f.front)
	noteRest(doc, f.front)
	switch form {
	case Agent:
		asAgent(doc)
	case Command:
		asCommand(doc, f.front)
	case Skill:
		asCommand(doc, f.front)
		withFiles(doc, s)
	}
	slices.SortStableFunc(doc.Unknown, func(a, b item.UnknownName) int { return a.Line - b.Line })
	return doc, nil
}

// maxDescription is how much of a description is taken for one. Descriptions of agents
// go on with dialogues of several KiB, which say to their own program when to call
// them; those are found by a search and cost no thread anything.
const maxDescription = 500

func readTexts(doc *item.DirectiveDoc, f front) {
	if description, ok := f.get("description"); ok {
		doc.Prose = strings.ReplaceAll(description.text, `\n`, "\n")
		doc.Description = short(doc.Prose)
	}
	if version, ok := f.get("version"); ok && item.IsPlain(version.text) {
		doc.Version = version.text
	}
	if author, ok := f.get("author"); ok {
		doc.Author = author.text
	}
	if name, ok := f.get("name"); ok { // the name of the file counts; searches find this one too
		doc.Title = name.text
	}
	if f.loose {
		doc.Unknown = append(doc.Unknown, item.UnknownName{Line: firstLine, Text: "the front matter is no YAML and was read line by line"})
	}
	if doc.Description == "" {
		doc.Description = short(firstWords(doc.Body))
	}
}

// short is the part of a description that says what something is for.
func short(text string) string {
	for _, mark := range []string{"<example", "Examples:", "Example:", "<commentary"} {
		text, _, _ = strings.Cut(text, mark)
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= maxDescription {
		return text
	}
	cut := item.Begin(text, maxDescription)
	if end := strings.LastIndex(cut, ". "); end > 0 {
		return cut[:end+1]
	}
	return cut + "…"
}

// firstWords is the first paragraph or heading of a text.
func firstWords(body string) string {
	for row := range strings.SplitSeq(body, "\n") {
		if row = strings.TrimSpace(strings.TrimLeft(row, "# ")); row != "" {
			return row
		}
	}
	return ""
}

func readBackground(doc *item.DirectiveDoc, f front) {
	given, _ := f.get("background")
	doc.Background = given.text == "true"
}

// readIsolation takes a workspace over. One that is not known is no reason to work in the
// project.
func readIsolation(doc *item.DirectiveDoc, f front) {
	given, there := f.get("isolation")
	switch {
	case !there || given.shape == isNothing || given.text == "none" || given.text == "false":
	case given.shape == isText && slices.Contains(thread.WorkspaceTypes(), given.text):
		doc.Workspace = given.text
	default:
		doc.Unknown = append(doc.Unknown, item.UnknownName{
			Line: given.line, Part: item.PartWorkspace, Text: "isolation is not one of " + strings.Join(thread.WorkspaceTypes(), ", "),
		})
	}
}

func readPermissions(doc *item.DirectiveDoc, f front) {
	g := toolsOf(f)
	doc.Permissions = item.Permissions{Declared: true, Capabilities: g.capabilities}
	doc.Unknown = append(doc.Unknown, g.notes...)
}

// readModel maps the model; what is not said is the caller's, as in Claude Code. An id
// that cannot be had gives way to the tier that it belongs to.
func readModel(doc *item.DirectiveDoc, f front) {
	model, ok := f.get("model")
	name := strings.ToLower(strings.TrimSuffix(model.text, "[1m]"))
	switch {
	case !ok || model.shape == isNothing || name == "inherit" || name == "default":
		doc.Model.Inherit = true
	case model.shape != isText || !item.IsPlain(name):
		doc.Unknown = append(doc.Unknown, item.UnknownName{Line: model.line, Part: item.PartModel, Text: "model is no name of a model"})
	case name == "opusplan":
		doc.Model.Tier = tierOf("opus")
	case tierOf(name) != "" && !strings.ContainsAny(name, "-./"):
		doc.Model.Tier = tierOf(name)
	default:
		doc.Model.ID, doc.Model.Tier = strings.TrimSuffix(model.text, "[1m]"), tierOf(name)
	}
	effort, ok := f.get("effort")
	switch {
	case !ok || effort.shape == isNothing:
	case slices.Contains(item.Efforts(), effort.text):
		doc.Model.Effort = effort.text
	default:
		doc.Unknown = append(doc.Unknown, item.UnknownName{Line: effort.line, Text: "effort is none of " + strings.Join(item.Efforts(), ", ")})
	}
}

// tierOf is the tier of a family of models.
func tierOf(name string) string {
	for _, family := range [][2]string{{"haiku", "fast"}, {"sonnet", "general"}, {"opus", "high"}, {"fable", "max"}} {
		if strings.Contains(name, family[0]) {
			return family[1]
		}
	}
	return ""
}

func readTurns(doc *item.DirectiveDoc, f front) {
	turns, ok := f.get("maxTurns", "max-turns")
	if !ok || turns.shape == isNothing {
		return
	}
	n, err := strconv.Atoi(turns.text)
	if err == nil && (n < 1 || n > math.MaxInt32) {
		err = errors.New("out of range")
	}
	if err != nil {
		doc.Unknown = append(doc.Unknown, item.UnknownName{Line: turns.line, Part: item.PartLimits, Text: turns.key + " is no number of turns"})
		return
	}
	doc.Limits = item.LimitSet{"turns": float64(n)}
}

// asAgent: the text of an agent is what it is told before everything else, as it
// stands, and its task comes apart from it.
func asAgent(doc *item.DirectiveDoc) {
	doc.Syntax = item.SyntaxNone
	doc.Inputs = []item.Input{{Name: InputPrompt, Type: item.TypeString, Required: true, Description: "the task for the agent"}}
}

// asCommand gives commands and skills their one input.
func asCommand(doc *item.DirectiveDoc, f front) {
	doc.Syntax = item.SyntaxDollar
	in := item.Input{Name: InputArguments, Type: item.TypeString, Description: "what follows the name of the command"}
	if hint, ok := f.get("argument-hint"); ok {
		if text := hint.text + strings.Join(hint.list, " "); text != "" {
			in.Description = short(text)
		}
	}
	doc.Inputs = []item.Input{in}
	shells := slices.ContainsFunc(Parse(doc.Body), func(p Part) bool { return p.Kind == PartShell })
	if shells && !slices.Contains(doc.Permissions.Capabilities, shell) {
		doc.Unknown = append(doc.Unknown, item.UnknownName{Line: 1, Part: item.PartPermissions,
			Text: "its text has commands (!`…`), and its tools do not name Bash, so they could not run"})
	}
}

// maxListed is how many files of a skill its text names.
const maxListed = 50

// withFiles tells the model of a skill which files there are, and how to read them.
func withFiles(doc *item.DirectiveDoc, s Source) {
	doc.Folder = s.Folder
	if len(s.Files) == 0 {
		return
	}
	doc.Permissions.Capabilities = once(append(doc.Permissions.Capabilities, "rye.fetch.knowledge."+strings.ReplaceAll(s.ID, "/", ".")+".*"))
	names := slices.DeleteFunc(slices.Clone(s.Files), func(name string) bool { return item.CheckID(s.ID+"/"+name) != nil })
	more := ""
	if len(names) > maxListed {
		more = fmt.Sprintf(" and %d more", len(names)-maxListed)
		names = names[:maxListed]
	}
	doc.After = fmt.Sprintf("Files of this skill: %s%s. Read one with rye_fetch: item_type knowledge, item_id %s/<file>.", strings.Join(names, ", "), more, s.ID)
}

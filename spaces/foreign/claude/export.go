package claude

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// ExportFolder is where the agents lie that stand for directives, below the folder of
// a project or of the user. They are no items: each stands for one.
const ExportFolder = ".claude/agents/" + exported

const exported = "rye"

// Export is an agent of Claude Code that has a directive done in a thread.
type Export struct {
	ID     string // of the directive
	Name   string // see [ExportNames]
	Server string // what the server is called there
	Doc    *item.DirectiveDoc
}

// ExportNames names the agents of directives: the id with its slashes replaced. Ids
// that would have one name get a part of their hash.
func ExportNames(ids []string) map[string]string {
	of := map[string][]string{}
	for _, id := range ids {
		if name := plainID(id); !slices.Contains(of[name], id) {
			of[name] = append(of[name], id)
		}
	}
	names := map[string]string{}
	for name, same := range of {
		for _, id := range same {
			names[id] = name
			if len(same) > 1 || name != strings.ReplaceAll(id, "/", "-") {
				sum := sha256.Sum256([]byte(id))
				names[id] = name + "-" + hex.EncodeToString(sum[:4])
			}
		}
	}
	return names
}

// plainID is an id as names of agents are: small letters, digits and hyphens.
func plainID(id string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(id))
	return name[:min(len(name), 80)]
}

// exportText is what such an agent is told. It passes the task on and does nothing by
// itself: what the directive may do and spend is what its thread may.
const exportText = `You hand a task to the rye server and report what came of it. You do not do it yourself.

1. Call %[1]s__rye_execute once, with exactly this, and the parameters taken from what you were asked:
   {"item_type": "directive", "item_id": %[2]s, "thread": "fork", "parameters": {…}}
%[3]s2. When the status is created or running, call %[1]s__wait_threads with {"thread_ids": [the thread_id]} until it has ended.
3. Report the result and the outputs as they are, with the thread_id and the cost. When it failed, report code, error and hint, and do not try another way.
`

// File is the file of the agent.
func (e Export) File() ([]byte, error) {
	server := "mcp__" + e.Server
	description := short(e.Doc.Description)
	if description == "" {
		description = "Runs the directive " + e.ID
	}
	quoted, err := quote(description + " (a directive of rye; runs in a thread with its own limits)")
	if err != nil {
		return nil, err
	}
	id, err := quote(e.ID)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "---\nname: rye-%s\ndescription: %s\ntools: %s__rye_execute, %s__wait_threads\nmodel: haiku\n---\n\n", e.Name, quoted, server, server)
	fmt.Fprintf(&b, exportText, server, id, parameters(e.Doc.Inputs))
	return append(b.Bytes(), mark(e.ID, b.Bytes())...), nil
}

// quote is a text as JSON has it, which YAML reads the same way.
func quote(text string) (string, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(strings.Join(strings.Fields(text), " "))
	return strings.TrimSpace(b.String()), err
}

// parameters lists the inputs of a directive.
func parameters(inputs []item.Input) string {
	if len(inputs) == 0 {
		return "   It takes no parameters.\n"
	}
	var b strings.Builder
	b.WriteString("   Parameters:\n")
	for _, in := range inputs {
		need := "optional"
		if in.Required {
			need = "required"
		}
		fmt.Fprintf(&b, "   - %s (%s, %s)", in.Name, in.Type, need)
		if len(in.Enum) > 0 {
			fmt.Fprintf(&b, ", one of %s", strings.Join(in.Enum, ", "))
		}
		if in.Description != "" {
			b.WriteString(": " + strings.Join(strings.Fields(in.Description), " "))
		}
		b.WriteString("\n")
	}
	return b.String()
}

const (
	markBegins = "\n<!-- written by rye-mcp export claude for "
	markEnds   = " -->\n"
)

// mark is the last line of a file that was written here, with the hash of the id and of
// what stands above it.
func mark(id string, content []byte) []byte {
	sum := sha256.Sum256(append([]byte(id+"\n"), content...))
	return []byte(markBegins + id + " " + hex.EncodeToString(sum[:]) + markEnds)
}

// ExportOf says which directive a file was written for. Whole is false when somebody
// has changed it since; id is empty for a file that was not written here.
func ExportOf(content []byte) (id string, whole bool) {
	at := bytes.LastIndex(content, []byte(markBegins))
	if at < 0 {
		return "", false
	}
	line, rest, closed := strings.Cut(string(content[at+len(markBegins):]), markEnds)
	id, _, ok := strings.Cut(line, " ")
	if !ok || !closed || item.CheckID(id) != nil {
		return "", false
	}
	return id, rest == "" && bytes.Equal(mark(id, content[:at]), content[at:])
}

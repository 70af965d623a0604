package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/spaces/configfile"
	"github.com/rye-mcp/rye-mcp/spaces/foreign/clients"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// show prints entries and where they go to.
func (in *installer) show(chosen []clients.Client) error {
	printed := make([]printedEntry, 0, len(chosen))
	for _, c := range chosen {
		entry, notes, err := in.entry(c)
		if err != nil {
			return err
		}
		text, err := c.Snippet(in.flags.name, entry)
		if err != nil {
			return err
		}
		path := in.path(c)
		if in.flags.scope == scopeProject {
			path = filepath.Join(in.project, filepath.FromSlash(c.Project))
		}
		printed = append(printed, printedEntry{Client: c.ID, Scope: in.flags.scope, Path: path, Language: c.Language(), Text: text, Notes: notes})
	}
	return conclude(in.sys, in.flags.json, printed, true, func() error {
		for _, p := range printed {
			if _, err := fmt.Fprintf(in.sys.Stdout, "%s\n\n%s\n", plain.Line(p.Path), p.Text); err != nil {
				return err
			}
			for _, note := range p.Notes {
				if _, err := fmt.Fprintf(in.sys.Stderr, "note     %s\n", plain.Line(note)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// printedEntry is an entry for people to put in themselves.
type printedEntry struct {
	Client   string   `json:"client"`
	Scope    string   `json:"scope"`
	Path     string   `json:"path"`
	Language string   `json:"language"`
	Text     string   `json:"text"`
	Notes    []string `json:"notes,omitempty"`
}

// writeInstalled tells a person what was done for a client.
func writeInstalled(sys System, done installed) error {
	var b strings.Builder
	say := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s %s\n", what, plain.Line(fmt.Sprintf(format, args...)))
	}
	switch done.State {
	case stateFailed:
		say("failed", "%s", done.Error)
		if done.Try != "" {
			say("try", "%s", done.Try)
		}
	case stateAbsent:
		say("absent", "%s has no entry %s", done.Path, done.Server)
	default:
		say(done.State, "%s (%s)", done.Path, done.Server)
	}
	if done.Link != "" {
		say("link", "%s leads there", done.Link)
	}
	if done.Backup != "" {
		say("copy", "%s has what was there", done.Backup)
	}
	if done.Command != "" {
		say("checked", "%s starts with %s in %d ms", strings.Join(append([]string{done.Command}, done.Args...), " "), counted(done.Tools, "tool"), done.StartedMS)
	}
	if len(done.Variables) > 0 {
		say("passes", "%s", strings.Join(done.Variables, ", "))
	}
	if done.Plugin != "" {
		say("plugin", "%s", done.Plugin)
	}
	for _, note := range done.Notes {
		say("note", "%s", note)
	}
	if done.State == stateWritten && done.Next != "" {
		say("next", "%s", done.Next)
	}
	_, err := sys.Stdout.Write([]byte(b.String()))
	return err
}

// foundClient is a client as the machine has it.
type foundClient struct {
	Client  string `json:"client"`
	Found   bool   `json:"found"`
	Path    string `json:"path"`
	Command string `json:"command,omitempty"` // of the entry
	Problem string `json:"problem,omitempty"`
}

// list looks at all clients.
func (in *installer) list() []foundClient {
	var all []foundClient
	for _, c := range clients.All() {
		if in.flags.scope == scopeProject && c.Project == "" {
			continue
		}
		one := foundClient{Client: c.ID, Found: in.isThere(c), Path: in.path(c)}
		found, is, err := in.entryOf(c)
		if file, openErr := in.open(c); openErr == nil {
			one.Path = file.Path
			_ = file.Close() // only read
		}
		switch {
		case err != nil:
			one.Problem = err.Error()
		case is:
			one.Command = strings.Join(append([]string{found.Command}, found.Args...), " ")
			if found.URL != "" {
				one.Command = found.URL
			}
		}
		all = append(all, one)
	}
	return all
}

// entryOf reads the entry of a client as it stands.
func (in *installer) entryOf(c clients.Client) (clients.Installed, bool, error) {
	file, err := in.open(c)
	if err != nil {
		return clients.Installed{}, false, err
	}
	defer func() { _ = file.Close() }() // only read
	return c.Find(file.Content, in.flags.name)
}

// isThere looks for the program of a client, or what it has left.
func (in *installer) isThere(c clients.Client) bool {
	for _, trace := range c.Traces(in.machine) {
		if _, err := os.Stat(trace); err == nil {
			return true
		}
	}
	return slices.ContainsFunc(c.Programs, func(name string) bool { return onPath(in.sys, name) != "" })
}

func writeClients(d display, all []foundClient) error {
	t := table{header: []string{"client", "found", "server", "file"}}
	for _, c := range all {
		found, server := cell{"no", dim}, cell{"-", dim}
		if c.Found {
			found = cell{"yes", green}
		}
		switch {
		case c.Problem != "":
			server = cell{"not read: " + item.ShownIn(c.Problem), red}
		case c.Command != "":
			server = text(c.Command)
		}
		t.add(text(c.Client), found, server, text(c.Path))
	}
	if err := t.write(d); err != nil {
		return err
	}
	_, err := fmt.Fprintln(d.out, "\nNext: rye-mcp install CLIENT, or rye-mcp install --all")
	return err
}

// configured is an entry of this program in a client's configuration.
type configured struct {
	client clients.Client
	name   string
	path   string
	entry  clients.Installed
}

// allConfigured are the entries of this program, of the user or of a project, and what is
// wrong with configurations that cannot be read.
func (in *installer) allConfigured() (all []configured, problems []error) {
	for _, c := range clients.All() {
		if in.flags.scope == scopeProject && c.Project == "" {
			continue
		}
		found, err := in.configuredIn(c)
		if err != nil {
			problems = append(problems, err)
		}
		all = append(all, found...)
	}
	return all, problems
}

func (in *installer) configuredIn(c clients.Client) ([]configured, error) {
	file, err := in.open(c)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	return entriesIn(c, file)
}

func entriesIn(c clients.Client, file *configfile.File) ([]configured, error) {
	names, err := c.Names(file.Content, programName)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file.Path, err)
	}
	var all []configured
	for _, name := range names {
		entry, _, err := c.Find(file.Content, name)
		if err != nil {
			return nil, err
		}
		all = append(all, configured{client: c, name: name, path: file.Path, entry: entry})
	}
	return all, nil
}

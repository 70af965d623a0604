package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/configfile"
	"github.com/rye-mcp/rye-mcp/spaces/foreign/clients"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/system"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// States of the entry of a client after the command.
const (
	stateWritten = "written"
	stateSame    = "unchanged"
	stateRemoved = "removed"
	stateAbsent  = "absent" // there was nothing to take out
	stateFailed  = "failed"
)

// installed is what install has done for a client.
type installed struct {
	Client    string   `json:"client"`
	Scope     string   `json:"scope"`
	State     string   `json:"state"`
	Path      string   `json:"path,omitempty"`
	Link      string   `json:"link,omitempty"`   // what led to the path
	Server    string   `json:"server,omitempty"` // the keys of the entry
	Backup    string   `json:"backup,omitempty"`
	Command   string   `json:"command,omitempty"`
	Args      []string `json:"args,omitempty"`
	Tools     int      `json:"tools,omitempty"` // that the server was seen to have
	StartedMS int64    `json:"started_ms,omitempty"`
	Variables []string `json:"variables,omitempty"` // whose names are in the entry
	Plugin    string   `json:"plugin,omitempty"`
	Notes     []string `json:"notes,omitempty"`
	Next      string   `json:"next,omitempty"`
	Error     string   `json:"error,omitempty"`
	Try       string   `json:"try,omitempty"`
}

// do puts the server into the configuration of a client, or takes it out.
func (in *installer) do(ctx context.Context, c clients.Client) (installed, error) {
	if in.flags.uninstall {
		return in.uninstall(c)
	}
	entry, notes, err := in.entry(c)
	if err != nil {
		return installed{}, err
	}
	done := installed{Client: c.ID, Scope: in.flags.scope, Server: in.at(c), Notes: notes, Next: c.Then}
	if err := in.put(ctx, c, entry, &done); err != nil {
		return installed{}, err
	}
	if c.ID == "claude-code" && in.flags.scope == scopeUser {
		if err := in.putPlugin(c, entry, &done); err != nil {
			return installed{}, err
		}
	}
	return done, nil
}

// attempts is how often an edit is made anew because another program was faster.
const attempts = 3

// put makes the edit, once the server has been seen to start.
func (in *installer) put(ctx context.Context, c clients.Client, entry clients.Entry, done *installed) error {
	change := clients.Change{
		Name: in.flags.name, Program: programName, Entry: entry, Force: in.flags.force,
		NewArgs: in.opts.project != "" || in.flags.scope == scopeProject,
	}
	return in.editing(c, func(file *configfile.File) error {
		after, err := c.Put(file.Content, change)
		if err != nil {
			return in.explain(c, file, err)
		}
		found, _, err := c.Find(after, in.flags.name)
		if err != nil {
			return err
		}
		if err := in.tryOut(ctx, c, change, found, done); err != nil {
			return err
		}
		done.Path, done.Link, done.Command, done.Args, done.Variables = file.Path, file.Linked, found.Command, found.Args, variablesOf(found)
		done.Notes = append(done.Notes, in.entryNotes(c, found)...)
		if bytes.Equal(after, file.Content) {
			done.State = stateSame
			return nil
		}
		done.State = stateWritten
		done.Backup, err = in.replace(c, file, after)
		return err
	})
}

// entryNotes say what stands in an entry that this program does not write.
func (in *installer) entryNotes(c clients.Client, found clients.Installed) []string {
	var notes []string
	if found.Off {
		notes = append(notes, "the entry is switched off there, and stays so")
	}
	if own := c.Own(found); len(own) > 0 {
		notes = append(notes, "the entry sets "+strings.Join(own, ", ")+" to values of its own, as it did before")
	}
	return notes
}

// variablesOf are those that an entry names.
func variablesOf(found clients.Installed) []string {
	names := slices.Clone(found.Listed)
	for name := range found.Env {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// uninstall takes the entry out, and the plugin.
func (in *installer) uninstall(c clients.Client) (installed, error) {
	done := installed{Client: c.ID, Scope: in.flags.scope, Server: in.at(c), State: stateAbsent}
	err := in.editing(c, func(file *configfile.File) error {
		done.Path, done.Link = file.Path, file.Linked
		if !file.Exists() {
			return nil
		}
		before, err := file.Backups()
		if err != nil {
			return err
		}
		found, is, err := c.Find(file.Content, in.flags.name)
		if err == nil && is && !found.Is(programName) {
			err = &clients.OtherError{At: in.at(c), Found: found}
		}
		if err != nil || !is {
			return in.explain(c, file, err)
		}
		after, err := c.Take(file.Content, in.flags.name, append(before, nil)...)
		if err != nil {
			return in.explain(c, file, err)
		}
		done.State = stateRemoved
		if after == nil {
			done.Notes = append(done.Notes, "the file had nothing else in it, and is gone")
			_, err = in.replace(c, file, nil)
			return err
		}
		done.Backup, err = in.replace(c, file, after)
		return err
	})
	if err == nil && c.ID == "claude-code" && in.flags.scope == scopeUser {
		err = in.takePlugin(c, &done)
	}
	return done, err
}

// editing opens the configuration of a client for an edit, and again when another program
// has written it meanwhile.
func (in *installer) editing(c clients.Client, edit func(*configfile.File) error) error {
	var err error
	for range attempts {
		if err = in.editOnce(c, edit); !errors.Is(err, configfile.ErrChanged) {
			break
		}
	}
	return in.explainFile(c, err)
}

func (in *installer) editOnce(c clients.Client, edit func(*configfile.File) error) (err error) {
	file, err := in.open(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return edit(file)
}

// replace writes a configuration, or takes it away where there is no content. A client
// that has a lock for its own writes is kept out meanwhile.
func (in *installer) replace(c clients.Client, file *configfile.File, content []byte) (copied string, err error) {
	if c.Lock && in.flags.scope == scopeUser {
		unlock, err := file.Lock(in.sys.Now())
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, unlock()) }()
	}
	if content == nil {
		return "", file.Remove()
	}
	return file.Replace(content, in.sys.Now())
}

// open reads the configuration of a client.
func (in *installer) open(c clients.Client) (*configfile.File, error) {
	if in.flags.scope == scopeProject {
		return configfile.OpenIn(in.project, c.Project)
	}
	return configfile.OpenOwn(in.path(c))
}

// at are the keys of the entry, for people.
func (in *installer) at(c clients.Client) string { return c.At(in.flags.name) }

// explain says what an edit that is refused means, and what to do.
func (in *installer) explain(c clients.Client, file *configfile.File, err error) error {
	if err == nil {
		return nil
	}
	byHand := "rye-mcp install " + c.ID + " --print shows the entry to put in"
	other, ok := errors.AsType[*clients.OtherError](err)
	switch {
	case ok && in.flags.uninstall:
		return tool.Faultf(tool.CodeConflict, "%s: %w, not ours, and stays:\n%s", file.Path, err, other.Found.Text).
			WithTry("rye-mcp install %s --uninstall --name NAME, if ours has another name", c.ID)
	case ok:
		return tool.Faultf(tool.CodeConflict, "%s: %w, and stays:\n%s", file.Path, err, other.Found.Text).
			WithTry("--name with another name, or --force, which replaces it")
	case errors.Is(err, clients.ErrByHand):
		return tool.Faultf(tool.CodeUnsupported, "%s is left as it is: %w", file.Path, err).WithTry("%s", byHand)
	}
	return tool.Faultf(tool.CodeInvalidConfig, "%s is left as it is: %w", file.Path, err).
		WithTry("mend it, or move it away, then again; %s", byHand)
}

// explainFile says what a file that cannot be used means, and what to do.
func (in *installer) explainFile(c clients.Client, err error) error {
	if fault, ok := errors.AsType[*tool.Fault](err); err == nil || ok && fault != nil {
		return err
	}
	code := tool.CodeUnsupported
	var try string
	switch {
	case errors.Is(err, configfile.ErrLink):
		code, try = tool.CodeOutsideProject, "put a file of its own there, or --scope user"
	case errors.Is(err, configfile.ErrDangling):
		try = "make the file that it leads to, or remove the link"
	case errors.Is(err, configfile.ErrNotRegular), errors.Is(err, configfile.ErrTooLarge):
		try = "move it away, then again"
	case errors.Is(err, configfile.ErrForeign), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		try = "make it your own, or put in yourself what rye-mcp install " + c.ID + " --print shows"
	case errors.Is(err, configfile.ErrChanged), errors.Is(err, configfile.ErrBusy):
		code, try = tool.CodeConflict, "end "+c.Title+", then again"
	default:
		return err
	}
	return tool.Faultf(code, "%w", err).WithTry("%s", try)
}

// entry is how the client is to start the server, and what there is to say about it.
func (in *installer) entry(c clients.Client) (clients.Entry, []string, error) {
	command, err := in.command()
	if err != nil {
		return clients.Entry{}, nil, err
	}
	e := clients.Entry{Command: command, Args: []string{"--stdio"}}
	var notes []string
	switch {
	case in.flags.scope == scopeProject:
		notes = append(notes, "everybody who clones the project and trusts it in "+c.Title+" runs this entry")
		if filepath.IsAbs(command) {
			notes = append(notes, "others have the program elsewhere: with rye-mcp on the PATH the entry names it without a folder")
		}
		if c.Workspace() != "" {
			e.Args = append(e.Args, "--project", c.Workspace())
		}
	case in.project != "":
		e.Args = append(e.Args, "--project", in.project)
	case c.Homeless:
		notes = append(notes, c.Title+" starts it in no project: --project FOLDER names one here, or models pass project_path")
	}
	names, set, err := in.variables(c)
	if err != nil {
		return e, nil, err
	}
	e.Variables = names
	if needsNoKey(resolve.Roots{Project: cmp.Or(in.project, in.user), User: in.user, System: system.FS()}) {
		return e, notes, nil
	}
	return e, append(notes, keyNotes(c, names, set)...), nil
}

// keyNotes say how the keys of model providers come to the server.
func keyNotes(c clients.Client, names, set []string) []string {
	switch c.Passes {
	case clients.Everything:
		if len(set) == 0 {
			return []string{"no key of a model provider is set here: set one where " + c.Title + " is started from"}
		}
	case clients.Little:
		return []string{c.Title + " passes no keys on: name the key in your settings with api_key_keychain or api_key_command (rye-mcp help guides/install)"}
	case clients.Named, clients.Referred:
		if len(names) == 0 {
			return []string{"no key of a model provider is set here, so the entry names none: set one, then again"}
		}
	}
	return nil
}

// variables are the names that the entry of a client has to have, and those of keys that
// are set now. A client that was never seen with a name that is not set gets none such.
func (in *installer) variables(c clients.Client) (names, set []string, err error) {
	keys, err := in.keyVariables()
	if err != nil {
		return nil, nil, err
	}
	for _, name := range keys {
		if strings.TrimSpace(in.sys.Getenv(name)) != "" {
			set = append(set, name)
		}
	}
	switch {
	case c.Passes == clients.Everything || c.Passes == clients.Little:
		return nil, set, nil
	case c.Lenient:
		names = slices.Clone(keys)
	default:
		names = slices.Clone(set)
	}
	if in.flags.scope == scopeUser && in.sys.Getenv("USER_SPACE") != "" {
		names = append(names, "USER_SPACE")
	}
	return names, set, nil
}

// keyVariables are the variables that hold keys by the settings of the user, and not of a
// project: providers of models, and the one that is asked to search the web.
func (in *installer) keyVariables() ([]string, error) {
	settings := config.New(resolve.Roots{Project: in.user, User: in.user, System: system.FS()}).Read()
	providers, err := settings.ProviderNames()
	if err != nil {
		return nil, err
	}
	var names []string
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range providers {
		if p, _, err := settings.Provider(name); err == nil { // doctor tells what is wrong with one
			add(p.APIKeyEnv)
		}
	}
	if t, _, err := settings.Tools(); err == nil {
		add(t.Web.Search.Providers[t.Web.Search.Provider].KeyEnv)
	}
	slices.Sort(names)
	return names, nil
}

// command is how a configuration names this program: as [lastingPath] has it. Programs with
// windows are not started from a shell and have another PATH, so that a folder goes with it; in
// a project, where others have other folders, it does not.
func (in *installer) command() (string, error) {
	path, onPATH, err := lastingPath(in.sys)
	switch {
	case err != nil:
		return "", fmt.Errorf("this program's own file is not known: %w", err)
	case onPATH && in.flags.scope == scopeProject:
		return programName, nil
	case onPATH:
		return path, nil
	}
	if _, err := os.Stat(path); err != nil {
		return "", tool.Faultf(tool.CodeUnsupported, "this program's own file %s is gone, so no client could start it", path).
			WithTry("start the new one: %s install", programName)
	}
	if isTemporary(path) {
		return "", tool.Faultf(tool.CodeUnsupported, "%s is gone when it ends, so no client could start it", path).
			WithTry("go install ./cmd/rye-mcp, then rye-mcp install")
	}
	return path, nil
}

// lastingPath is where this program is found when a newer one is installed: the place where the
// PATH has it, which may be a link to it, else its own.
func lastingPath(sys System) (path string, onPATH bool, err error) {
	self, err := sys.Executable()
	if err != nil {
		return "", false, err
	}
	there := onPath(sys, programName)
	found, err := os.Stat(there)
	if err != nil {
		return self, false, nil //nolint:nilerr // it is not on the PATH
	}
	if own, err := os.Stat(self); err == nil && os.SameFile(found, own) {
		return there, true, nil
	}
	return self, false, nil
}

// isTemporary recognises a program that "go run" has made.
func isTemporary(path string) bool { return strings.Contains(path, "go-build") }

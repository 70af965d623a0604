package clients

import (
	"maps"
	"slices"
	"strings"
)

// Entry is how a client starts the server.
type Entry struct {
	Command string
	Args    []string
	// Variables are the names of variables that the server needs of the environment, for
	// clients that do not pass it on.
	Variables []string

	reference func(name string) string
}

// member is one of an entry, in the order in which entries are written.
type member struct {
	key   string
	value any // string, bool, int, []string, []member
	// tuned members are written where there is none: people set them as they like.
	tuned bool
	// joined lists keep what is in them.
	joined bool
}

// membersOf is an entry in the words of a client.
func (c Client) membersOf(e Entry) []member {
	e.reference = c.reference
	return c.members(e)
}

func plain(e Entry) []member {
	return []member{{key: "command", value: e.Command}, {key: "args", value: e.Args}}
}

func referring(e Entry) []member {
	all := plain(e)
	if e.reference == nil || len(e.Variables) == 0 {
		return all
	}
	var env []member
	for _, name := range e.Variables {
		env = append(env, member{key: name, value: e.reference(name), tuned: true})
	}
	return append(all, member{key: "env", value: env})
}

func stdio(e Entry) []member {
	return append([]member{{key: "type", value: "stdio"}}, referring(e)...)
}

func gemini(e Entry) []member {
	return append(referring(e), member{key: "timeout", value: callSeconds * 1000, tuned: true})
}

func zed(e Entry) []member {
	return append(plain(e), member{key: "timeout", value: callSeconds, tuned: true})
}

func opencode(e Entry) []member {
	return []member{
		{key: "type", value: "local"},
		{key: "command", value: append([]string{e.Command}, e.Args...)},
		{key: "enabled", value: true, tuned: true},
		{key: "timeout", value: callSeconds * 1000, tuned: true},
	}
}

func codex(e Entry) []member {
	all := plain(e)
	if len(e.Variables) > 0 {
		all = append(all, member{key: "env_vars", value: e.Variables, joined: true})
	}
	return append(all, member{key: "tool_timeout_sec", value: callSeconds, tuned: true})
}

// Installed is an entry as it stands in a configuration.
type Installed struct {
	Command string
	Args    []string
	Env     map[string]string // values that the entry sets
	Listed  []string          // variables that it names
	URL     string
	Off     bool
	Text    string // as it is written there
	Line    int
}

// installed reads an entry.
func installed(values map[string]any) Installed {
	var i Installed
	switch command := values["command"].(type) {
	case string:
		i.Command, i.Args = command, texts(values["args"])
	case []any:
		if all := texts(values["command"]); len(all) > 0 {
			i.Command, i.Args = all[0], all[1:]
		}
	case map[string]any: // as Zed once had it
		i.Command, _ = command["path"].(string)
		i.Args = texts(command["args"])
	}
	for _, key := range []string{"url", "serverUrl", "httpUrl"} {
		if url, ok := values[key].(string); ok {
			i.URL = url
		}
	}
	for _, key := range []string{"env", "environment"} {
		if env, ok := values[key].(map[string]any); ok && i.Env == nil {
			i.Env = make(map[string]string, len(env))
			for name, value := range env {
				i.Env[name], _ = value.(string)
			}
		}
	}
	i.Listed = texts(values["env_vars"])
	disabled, _ := values["disabled"].(bool)
	enabled, set := values["enabled"].(bool)
	i.Off = disabled || set && !enabled
	return i
}

func texts(value any) []string {
	list, _ := value.([]any)
	all := make([]string, 0, len(list))
	for _, v := range list {
		text, _ := v.(string)
		all = append(all, text)
	}
	return all
}

// Is reports whether the entry starts the program of a name, wherever that lies.
func (i Installed) Is(program string) bool {
	name := i.Command
	if at := strings.LastIndexAny(name, `/\`); at >= 0 {
		name = name[at+1:]
	}
	return i.URL == "" && strings.TrimSuffix(strings.ToLower(name), ".exe") == program
}

// Own are the variables that an entry gives values of its own, sorted.
func (c Client) Own(i Installed) []string {
	var names []string
	for name, value := range i.Env {
		if c.reference == nil || value != c.reference(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// kept is the rest of what an entry of ours has been given by a person: arguments, and
// the names of variables.
func (i Installed) kept(e Entry, newArgs bool) Entry {
	if !newArgs && len(i.Args) > 0 {
		e.Args = i.Args
	}
	return e
}

// baseVariables are those that clients which pass little pass all the same.
var baseVariables = []string{"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "TMPDIR", "TZ",
	"USERPROFILE", "APPDATA", "LOCALAPPDATA", "SYSTEMROOT", "TEMP", "TMP", "PATHEXT"}

// Environ is the environment that a server of this entry gets from the client when the
// client's own is environ, sorted.
func (c Client) Environ(environ []string, i Installed) []string {
	all := make(map[string]string)
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		all[name] = value
	}
	got := make(map[string]string)
	for name, value := range all {
		if c.Passes == Everything || slices.Contains(baseVariables, name) || slices.Contains(i.Listed, name) {
			got[name] = value
		}
	}
	for name, value := range i.Env {
		if c.reference != nil && value == c.reference(name) {
			value = all[name]
		}
		got[name] = value
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(got)) {
		list = append(list, name+"="+got[name])
	}
	return list
}

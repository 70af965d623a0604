package clients

import (
	"path/filepath"
	"slices"
	"strings"
)

// Machine is what the places of configurations depend on.
type Machine struct {
	OS     string // as runtime.GOOS has it
	Home   string
	Getenv func(string) string
}

// Passing is what of a client's own environment a server gets from it.
type Passing int

// From most to least.
const (
	// Everything: the client's whole environment.
	Everything Passing = iota
	// Named: little, and the variables that an entry lists.
	Named
	// Referred: little, and the variables that an entry refers to.
	Referred
	// Little: what a program needs to find its files, and an entry can add only values.
	Little
)

// Client is a program that MCP servers are installed in.
type Client struct {
	ID    string // as people name it on a command line
	Title string
	// Project is its file in a project, with slashes; empty where it has none.
	Project string
	// Programs are the names of its commands.
	Programs []string
	// Passes is what of its environment a server gets.
	Passes Passing
	// Lenient says that it was seen to start a server whose entry refers to a variable
	// that is not set.
	Lenient bool
	// Homeless says that it starts servers in no project's folder and names none.
	Homeless bool
	// Lock says that it guards its own writes by a folder beside the file, whose name
	// has .lock in addition.
	Lock bool
	// Then is what a person does after its configuration has changed.
	Then string
	// Strict says that it reads neither comments nor trailing commas.
	Strict bool

	format    format
	keys      []string // of the table of servers
	files     func(Machine) []string
	reference func(name string) string
	members   func(Entry) []member
	workspace string // what stands for the project's folder in arguments
	plugins   func(Machine) string
}

// format is how a configuration is written.
type format int

const (
	jsonFormat format = iota
	tomlFormat
)

// Language is the form of its configuration, as code blocks name it.
func (c Client) Language() string {
	if c.format == tomlFormat {
		return "toml"
	}
	return "json"
}

// Files are the places of its configuration for all projects of a user. The first that
// exists is the one in use; where none does, the first is to be made.
func (c Client) Files(m Machine) []string { return c.files(m) }

// Workspace stands for the folder of the project in the arguments of an entry; empty
// where a client has no such word.
func (c Client) Workspace() string { return c.workspace }

// Plugins is the folder that it takes plugins from, one a folder; empty where it has none.
func (c Client) Plugins(m Machine) string {
	if c.plugins == nil {
		return ""
	}
	return c.plugins(m)
}

// Traces are files and folders of which one is there where the client is.
func (c Client) Traces(m Machine) []string {
	var all []string
	for _, file := range c.files(m) {
		all = append(all, file)
		if dir := filepath.Dir(file); dir != filepath.Clean(m.Home) {
			all = append(all, dir)
		}
	}
	if c.plugins != nil {
		all = append(all, filepath.Dir(c.plugins(m)))
	}
	return all
}

// At are the keys of an entry, with dots between them.
func (c Client) At(name string) string {
	return strings.Join(append(slices.Clone(c.keys), name), ".")
}

// ByID finds a client.
func ByID(id string) (Client, bool) {
	all := All()
	i := slices.IndexFunc(all, func(c Client) bool { return c.ID == id })
	if i < 0 {
		return Client{}, false
	}
	return all[i], true
}

// IDs are the names of all clients.
func IDs() []string {
	var ids []string
	for _, c := range All() {
		ids = append(ids, c.ID)
	}
	return ids
}

// configHome is where programs of Linux keep their configuration.
func configHome(m Machine) string {
	if dir := m.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(m.Home, ".config")
}

// appData is where programs with windows keep theirs.
func appData(m Machine) string {
	switch m.OS {
	case "darwin":
		return filepath.Join(m.Home, "Library", "Application Support")
	case "windows":
		if dir := m.Getenv("APPDATA"); dir != "" {
			return dir
		}
		return filepath.Join(m.Home, "AppData", "Roaming")
	}
	return configHome(m)
}

// moved is a folder of the home, or the one that a variable names in its place.
func moved(m Machine, variable string, parts ...string) string {
	if dir := m.Getenv(variable); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(append([]string{m.Home}, parts...)...)
}

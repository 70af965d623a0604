package chain

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// World is what a builder needs to know of the machine and of the user.
type World struct {
	// Environ is the environment, KEY=value, with what a thread's process was handed
	// apart from its own.
	Environ []string
	// Accepted reports whether the user has accepted what this project brings: only
	// then do its .venv, its node_modules and its .env count.
	Accepted func() bool
	// Settings reads a settings file of every space for config_resolve.
	Settings func(rel string) ([]config.Layer, error)
	// Confine bounds a command that says where an interpreter is, or of which version; nil:
	// nothing does.
	Confine func(ctx context.Context, call tool.Env, command *process.Command) error
	// Library is a folder of the user's, in which files of the system space are put for
	// programs to read. It is made when it is needed.
	Library string
	// Spaces are the directories of project and user, where items are resolved from copies
	// of them; empty: items are resolved from the directories themselves.
	Spaces resolve.Roots
}

// spaces are the directories of project and user.
func (b *Builder) spaces() resolve.Roots {
	if s := b.World.Spaces; s.Project != "" || s.User != "" {
		return s
	}
	return b.Resolver.Roots()
}

// variables are those of the environment that ${NAME} can stand for.
type variables struct {
	set     map[string]string // by the chain
	environ []string
	dotenv  func() map[string]string
}

// get is the value of a variable: what the chain has set, then the environment, then
// the project's .env.
func (v *variables) get(name string) (string, bool) {
	if value, ok := v.set[name]; ok {
		return value, true
	}
	if value, ok := v.outer(name); ok {
		return value, true
	}
	value, ok := v.dotenv()[name]
	return value, ok
}

// outer is the value in the environment of this program.
func (v *variables) outer(name string) (string, bool) {
	if isKept(name) {
		return "", false
	}
	for _, entry := range slices.Backward(v.environ) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// isKept reports whether no tool gets a variable, whatever it is configured with: the
// credentials by which this program sends its traces.
func isKept(name string) bool {
	return strings.HasPrefix(name, "OTEL_EXPORTER_OTLP_") && strings.HasSuffix(name, "HEADERS")
}

// base is the environment that every process gets: what a program needs to find its
// files, and nothing that anybody would call a secret.
func (b *Builder) base() []string {
	env := process.ToolEnv(b.World.Environ)
	if b.World.Library != "" {
		// Compiled files beside a source could hold anything: nobody signs them.
		env = append(env, "PYTHONPYCACHEPREFIX="+filepath.Join(b.World.Library, "pycache"))
	}
	return env
}

// maxDotenv is how much of a .env is read.
const maxDotenv = 256 << 10

// dotenv reads the .env of the project, if the user has accepted the project. A file
// that cannot be read says nothing.
func (b *Builder) dotenv() map[string]string {
	project := b.spaces().Project
	if project == "" || !b.World.Accepted() {
		return nil
	}
	root, err := os.OpenRoot(project)
	if err != nil {
		return nil
	}
	defer func() { _ = root.Close() }() // only read
	file, _, err := regular.FollowIn(root, ".env")
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(file, maxDotenv))
	if err != nil {
		return nil
	}
	return parseDotenv(text)
}

// parseDotenv reads lines of the form NAME=value, with or without export and quotes.
func parseDotenv(text []byte) map[string]string {
	found := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxDotenv+1)
	for lines.Scan() {
		line := strings.TrimPrefix(strings.TrimSpace(lines.Text()), "export ")
		name, value, ok := strings.Cut(line, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || strings.HasPrefix(name, "#") || name == "" || strings.ContainsAny(name, " \t\x00") || strings.ContainsRune(value, 0) {
			continue
		}
		found[name] = unquoted(value)
	}
	return found
}

// unquoted is a value without its quotes, or without the comment behind it.
func unquoted(value string) string {
	if value == "" {
		return value
	}
	if q := value[0]; q == '"' || q == '\'' {
		if end := strings.IndexByte(value[1:], q); end >= 0 {
			return value[1 : 1+end]
		}
		return value
	}
	value, _, _ = strings.Cut(value, " #")
	return strings.TrimSpace(value)
}

package chain

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/pathname"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Types of env_config.interpreter. The last two are older spellings of the first.
const (
	localBinary  = "local_binary"
	systemBinary = "system_binary"
	byCommand    = "command"
	venvPython   = "venv_python"
	nodeModules  = "node_modules"
)

// interpreter finds the program that an element names, and the warning about one that
// was passed over.
func (m *making) interpreter(ctx context.Context, e Element, s *interpreterSpec) (path string, err error) {
	if s.Var != "" { // the user's own choice
		if set, ok := m.vars.outer(s.Var); ok && filepath.IsAbs(set) && runnable(set) {
			return set, nil
		}
	}
	switch s.Type {
	case localBinary, "", venvPython, nodeModules:
		path = m.localBinary(s)
	case systemBinary:
		path = m.inPath(append([]string{s.Binary}, append(s.Candidates, s.Fallback)...)...)
	case byCommand:
		path, err = m.byCommand(ctx, s)
	default:
		return "", tool.Faultf(tool.CodeInvalidItem, "%s asks for an interpreter of the type %q; there are %s, %s and %s",
			e.ID, s.Type, localBinary, systemBinary, byCommand).With("path", e.Path)
	}
	if err != nil || path == "" {
		return "", m.noInterpreter(e, s, err)
	}
	return path, m.needs(ctx, s, path)
}

// localBinary looks in the folders that are named, where they count, then in PATH.
func (m *making) localBinary(s *interpreterSpec) string {
	names := append([]string{s.Binary}, s.Candidates...)
	paths, roots := s.SearchPaths, s.SearchRoots
	if s.Type == venvPython {
		names, paths = []string{"python", "python3"}, []string{filepath.Join(or(s.VenvPath, ".venv"), "bin")}
	}
	if s.Type == nodeModules && len(paths) == 0 {
		paths = []string{"node_modules/.bin"}
	}
	if len(roots) == 0 {
		roots = []string{"{project_path}"}
	}
	for _, root := range roots {
		for _, below := range paths {
			// Programs are those of the project: one that a thread has put into its workspace is
			// nobody's.
			root = strings.ReplaceAll(root, "{project_path}", m.plan.Call.Project)
			if found := m.below(m.values.text(root, nil), below, names); found != "" {
				return found
			}
		}
	}
	return m.inPath(append(names, s.Fallback)...)
}

// below looks for a program in a folder. A program in a project is code of that
// folder, and counts when its user has accepted the project.
func (m *making) below(root, folder string, names []string) string {
	for _, name := range names {
		path := filepath.Join(root, folder, name)
		if name == "" || !filepath.IsAbs(path) || !runnable(path) {
			continue
		}
		if m.strangers(path) {
			m.warn("%s is left out: this project's programs are not run before the person has accepted what it brings", filepath.Join(folder, name))
			continue
		}
		return path
	}
	return ""
}

// strangers reports whether a path lies in a project that its user has not accepted.
func (m *making) strangers(path string) bool {
	if m.accepted() {
		return false
	}
	for _, project := range []string{m.builder.spaces().Project, m.builder.Resolver.Roots().Project} { // a copy is the project's, too
		if pathname.Holds(project, path) {
			return true
		}
	}
	return false
}

// inPath looks names up in the folders of PATH. Relative ones are passed over: they
// mean whatever lies where the process happens to run.
func (m *making) inPath(names ...string) string {
	path, _ := m.vars.get("PATH")
	for _, name := range names {
		if filepath.IsAbs(name) && runnable(name) {
			return name
		}
		if name == "" || strings.ContainsRune(name, filepath.Separator) {
			continue
		}
		for _, dir := range filepath.SplitList(path) {
			if found := filepath.Join(dir, name); filepath.IsAbs(dir) && runnable(found) {
				return found
			}
		}
	}
	return ""
}

func runnable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// askingTime bounds a command that names an interpreter, or tells its version.
const askingTime = 10 * time.Second

// byCommand has a command say where the interpreter is.
func (m *making) byCommand(ctx context.Context, s *interpreterSpec) (string, error) {
	if len(s.ResolveCmd) == 0 {
		return "", fmt.Errorf("resolve_cmd is empty")
	}
	out, err := m.ask(ctx, s.ResolveCmd)
	if err == nil && filepath.IsAbs(out) && runnable(out) && !m.strangers(out) {
		return out, nil
	}
	return m.inPath(s.Fallback), err
}

// ask runs a command and returns its first line.
func (m *making) ask(ctx context.Context, command []string) (string, error) {
	program := m.inPath(m.values.text(command[0], nil))
	if program == "" {
		return "", fmt.Errorf("%s: %w", command[0], exec.ErrNotFound)
	}
	args := make([]string, len(command)-1)
	for i, arg := range command[1:] {
		args[i] = m.values.text(arg, nil)
	}
	question := process.Command{
		Path: program, Args: args, Env: m.builder.base(), Dir: m.builder.World.Library, Timeout: askingTime, MaxOutput: 4 << 10,
	}
	if confine := m.builder.World.Confine; confine != nil { // it may be a program of the project
		if err := confine(ctx, m.plan.Call, &question); err != nil {
			return "", err
		}
	}
	result, err := process.Run(ctx, question)
	if err != nil {
		return "", err
	}
	if result.ExitCode != 0 {
		return "", fmt.Errorf("%s ended with exit code %d", command[0], result.ExitCode)
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(result.Stdout)), "\n")
	return strings.TrimSpace(line), nil
}

// needs refuses an interpreter that cannot run the tool's file.
func (m *making) needs(ctx context.Context, s *interpreterSpec, path string) error {
	need, special := s.Needs[m.chain.Tool().Ext]
	if !special || filepath.Base(path) == need.Binary {
		return nil
	}
	version, err := m.version(ctx, path)
	if err == nil && need.Version != "" && !older(version, need.Version) {
		return nil
	}
	f := tool.Faultf(tool.CodeUnsupported, "%s is a %s file, which %s %s does not run", m.chain.Tool().ID, m.chain.Tool().Ext, filepath.Base(path), version).
		WithHint("Tell the person to install %s.", or(need.Install, need.Binary)).WithTry("install %s", or(need.Install, need.Binary))
	if need.Version != "" {
		f.Message += fmt.Sprintf("; it needs %s, or %s %s and later", need.Binary, filepath.Base(path), need.Version)
	}
	return f
}

var versionIn = regexp.MustCompile(`\d+(?:\.\d+)*`)

// version asks a program for its version. It is asked once for each program, and
// again when its file has changed.
func (m *making) version(ctx context.Context, path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	key := fmt.Sprint(path, info.Size(), info.ModTime().UnixNano())
	return m.builder.versions.get(key, func() (string, error) {
		out, err := m.ask(ctx, []string{path, "--version"})
		return versionIn.FindString(out), err
	})
}

// older compares versions number by number.
func older(version, than string) bool {
	a, b := strings.Split(version, "."), strings.Split(than, ".")
	return slices.CompareFunc(a, b, func(x, y string) int {
		n, _ := strconv.Atoi(x)
		m, _ := strconv.Atoi(y)
		return n - m
	}) < 0
}

// noInterpreter says what to install.
func (m *making) noInterpreter(e Element, s *interpreterSpec, cause error) error {
	wanted := or(s.Binary, s.Fallback)
	if s.Type == byCommand {
		wanted = strings.Join(s.ResolveCmd, " ")
	}
	f := tool.Faultf(tool.CodeUnsupported, "%s needs %s, which is not on this machine (looked for %s)", m.chain.Tool().ID, or(s.Install, wanted), m.lookedFor(s)).
		With("executor_id", e.ID).WithHint("Tell the person to install %s, or use another tool.", or(s.Install, wanted)).
		WithTry("install %s, and see that it is in the PATH of rye-mcp", or(s.Install, wanted))
	if cause != nil {
		f.Message += "; " + cause.Error()
	}
	return f
}

func (m *making) lookedFor(s *interpreterSpec) string {
	names := slices.DeleteFunc(append(append([]string{s.Binary}, s.Candidates...), s.Fallback), func(n string) bool { return n == "" })
	slices.Sort(names)
	where := append(slices.Clone(s.SearchPaths), "PATH")
	return strings.Join(slices.Compact(names), ", ") + " in " + strings.Join(where, ", ")
}

func or(first, otherwise string) string {
	if first != "" {
		return first
	}
	return otherwise
}

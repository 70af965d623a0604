package cli

import (
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/configfile"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/pathname"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/system"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// starter is what a new project gets.
//
//go:embed starter
var starter embed.FS

func newInitCommand(sys System, opts *options) *cobra.Command {
	return &cobra.Command{
		Use:   "init",
		Short: "Prepare a project and a signing key",
		Long: `Prepare the project folder: .ai with a first directive, and a signing key in the
user space when there is none. Files that exist are left as they are, so it can
be run again.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return initProject(sys, *opts) },
	}
}

func initProject(sys System, opts options) error {
	dir, err := projectDir(sys, opts)
	if err != nil {
		return err
	}
	if dir, err = canonical(dir); err != nil {
		return err
	}
	user, err := userSpace(sys)
	if err != nil {
		return err
	}
	key, created, err := ensureKey(user)
	if err != nil {
		return err
	}
	written, err := writeStarter(dir, key, sys)
	if err != nil {
		return err
	}
	roots := resolve.Roots{Project: dir, User: user, System: system.FS()}
	if err := acceptWritten(sys, roots, written); err != nil {
		return err
	}
	return tellInit(sys, roots, key, created, written)
}

// acceptWritten accepts the settings that have just been written, and nothing that
// was found. A project without any settings is accepted as it is: settings that
// come into it are asked about. Its programs count where there are none yet.
func acceptWritten(sys System, roots resolve.Roots, written []string) error {
	known := trust.ProjectOf(roots)
	if belowThread(sys) || known.Standing != trust.Stranger && known.Standing != trust.Accepted {
		return nil
	}
	found, err := trust.Take(roots.Project)
	if err != nil {
		return err
	}
	accepted, own := known.Record.Snapshot(), 0
	for _, path := range written {
		name, is := pathname.Inside(filepath.Join(roots.Project, ".ai", "config"), path)
		if !is {
			continue
		}
		content, err := starter.ReadFile("starter/config/" + filepath.ToSlash(name))
		if err != nil {
			return err
		}
		accepted, own = accepted.With(name, content), own+1
	}
	if own == 0 && len(found.Files)+len(found.Left) > 0 {
		return nil
	}
	accept := trust.Accept
	if len(trust.ProgramsIn(roots.Project)) == 0 {
		accept = trust.AcceptAll
	}
	return keepingFault(accept(roots, accepted, sys.Now()))
}

// ensureKey loads the signing key or makes one.
func ensureKey(user string) (key *sign.Key, created bool, err error) {
	key, err = sign.Load(user)
	if !errors.Is(err, sign.ErrNoKey) {
		return key, false, err
	}
	key, err = sign.Generate(user, false, rand.Reader)
	if errors.Is(err, sign.ErrKeyExists) { // another process was first
		key, err = sign.Load(user)
		return key, false, err
	}
	return key, err == nil, unwritable(err)
}

// unwritable says what to do where the user space cannot keep a key.
func unwritable(err error) error {
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		return err
	}
	return tool.Faultf(tool.CodeUnsupported, "the user space cannot be written: %w", err).
		WithHint("USER_SPACE=$(mktemp -d), or another folder that you can write")
}

// writeStarter writes the files of the starter that are not there yet, signed,
// and returns their paths.
func writeStarter(dir string, key *sign.Key, sys System) ([]string, error) {
	var written []string
	err := fs.WalkDir(starter, "starter", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel("starter", name)
		if err != nil {
			return err
		}
		content, err := starter.ReadFile(name)
		if err != nil {
			return err
		}
		if id, ok := strings.CutPrefix(filepath.ToSlash(rel), item.Directive.Dir()+"/"); ok {
			ext := path.Ext(id)
			as := trust.NameOf(resolve.Entry{Kind: item.Directive, ID: strings.TrimSuffix(id, ext), Ext: ext})
			if content, err = sign.Attach(content, ext, as, key, sys.Now()); err != nil {
				return err
			}
		}
		if rel == "gitignore" { // the embedding would leave out a file with a dot
			rel = ".gitignore"
		}
		made, err := writeNew(dir, ".ai/"+filepath.ToSlash(rel), content)
		if err == nil && made != "" {
			written = append(written, made)
		}
		return err
	})
	return written, err
}

// writeNew writes a file of the project, by its slash path, unless it exists, and returns its path where it did. No
// link that came with the project leads it elsewhere.
func writeNew(project, name string, content []byte) (path string, err error) {
	if _, err := os.Lstat(filepath.Join(project, filepath.FromSlash(name))); err == nil {
		return "", nil
	}
	f, err := configfile.OpenIn(project, name)
	if errors.Is(err, configfile.ErrLink) || errors.Is(err, configfile.ErrNotRegular) {
		return "", &usageError{message: err.Error(), try: "move it away, then rye-mcp init"}
	}
	if err != nil {
		return "", err
	}
	if !f.Exists() {
		path, err = f.Path, f.Overwrite(content)
	}
	if errors.Is(err, configfile.ErrChanged) { // another process was first
		path, err = "", nil
	}
	return path, errors.Join(err, f.Close())
}

func tellInit(sys System, roots resolve.Roots, key *sign.Key, created bool, written []string) error {
	for _, path := range written {
		if _, err := fmt.Fprintf(sys.Stdout, "wrote   %s\n", plain.Line(path)); err != nil {
			return err
		}
	}
	what := "found"
	if created {
		what = "created"
	}
	if _, err := fmt.Fprintf(sys.Stdout, "%-7s signing key %s\n\nPut the server into your client: rye-mcp install lists those it knows. Others take this entry:\n\n",
		what, key.Fingerprint()); err != nil {
		return err
	}
	if err := writeEditorConfig(sys, roots.Project); err != nil {
		return err
	}
	if found := trust.ProgramsIn(roots.Project); len(found) > 0 && !trust.ProjectOf(roots).Programs() {
		if _, err := fmt.Fprintf(sys.Stdout, "\nTools leave out what this folder brought unsigned, until rye-mcp trust: %s\n", strings.Join(found, ", ")); err != nil {
			return err
		}
	}
	keys := "It needs ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or OPENROUTER_API_KEY, or a running Ollama.\n" +
		"Without a key, rye-mcp demo shows threads at work on a scripted model.\n"
	if needsNoKey(roots) {
		keys = ""
	}
	_, err := fmt.Fprint(sys.Stdout, "\nThen run a first thread: rye-mcp run hello --input name=Ada\n"+
		"Two of many more (rye-mcp run shows them):\n"+
		"  rye-mcp run rye/explain --input path=.     what this project is and how it is built\n"+
		"  rye-mcp run rye/review                     what is wrong with what is not committed\n"+
		keys)
	return err
}

// needsNoKey reports that threads which name no model use a provider that takes no key: a
// scripted one, or one on this machine.
func needsNoKey(roots resolve.Roots) bool {
	settings := config.New(roots).Read()
	agent, _, err := settings.Agent()
	if err != nil || agent.Provider.Default == "" {
		return false
	}
	p, _, err := settings.Provider(agent.Provider.Default)
	return err == nil && p.APIKeyEnv == "" && p.APIKeyKeychain == "" && len(p.APIKeyCommand) == 0
}

// writeEditorConfig prints the entry that Claude Desktop, Claude Code and Cursor
// take; others spell it differently around the same command and arguments.
func writeEditorConfig(sys System, project string) error {
	executable, _, err := lastingPath(sys)
	if err != nil {
		return err
	}
	return writeJSON(sys.Stdout, map[string]any{"mcpServers": map[string]any{"rye": map[string]any{
		"command": executable, "args": []string{"--stdio", "--project", project},
	}}})
}

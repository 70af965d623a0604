// Package reach says what the command of a tool may reach: what the tool declares,
// within what the user's settings allow. Package confine holds it to that.
package reach

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/rye-mcp/rye-mcp/spaces/pathname"
	"github.com/rye-mcp/rye-mcp/tools/confine"
	"github.com/rye-mcp/rye-mcp/tools/executor/chain"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Settings are the user's: execution in the settings of tools.
type Settings struct {
	Mode confine.Mode
	// Writable are further folders that every command may change; ~ begins the home.
	Writable []string
	// ShellNetwork says that commands of rye/bash reach the network.
	ShellNetwork bool
}

// Reach bounds the commands of the tools of one project.
type Reach struct {
	Confiner *confine.Confiner
	Project  string
	User     string // folder with the user's .ai
	Home     string
	Temp     string
	Cache    string // of the user, for all projects; empty: none
	Scratch  string // what this program keeps for a moment and no command may see; empty: none
	Settings func() (Settings, error)
}

// Plan bounds the command of a plan, as subprocess and mcpclient ask for it.
func (r *Reach) Plan(ctx context.Context, p *chain.Plan, command *process.Command) error {
	s, err := r.Settings()
	if err != nil || s.Mode == confine.Off {
		return err
	}
	d, err := declared(p)
	if err != nil {
		return tool.Faultf(tool.CodeInvalidItem, "%s: %w", p.Chain.Tool().ID, err).With("path", p.Chain.Tool().Path)
	}
	if err := r.apply(ctx, s, p.Call, d, command); err != nil {
		return err
	}
	has := r.Confiner.Available(ctx)
	p.Offline = has.Namespaces && d.network.Off()
	if !has.Whole() {
		p.Warnings = append(p.Warnings, "commands of tools are not confined as a whole here: "+has.String())
	}
	return nil
}

// Shell bounds a command of rye/bash.
func (r *Reach) Shell(ctx context.Context, env tool.Env, command *process.Command) error {
	s, err := r.Settings()
	if err != nil || s.Mode == confine.Off {
		return err
	}
	return r.apply(ctx, s, env, declaration{network: confine.Network{All: s.ShellNetwork}}, command)
}

// Question bounds a command that is asked what runs a tool. It needs no network.
func (r *Reach) Question(ctx context.Context, env tool.Env, command *process.Command) error {
	s, err := r.Settings()
	if err != nil || s.Mode == confine.Off {
		return err
	}
	return r.apply(ctx, s, env, declaration{}, command)
}

func (r *Reach) apply(ctx context.Context, s Settings, env tool.Env, d declaration, command *process.Command) error {
	cache, variables, err := r.caches()
	if err != nil {
		return err
	}
	root := r.root(env)
	if err := r.makeProtected(root); err != nil {
		return err
	}
	writable := append([]string{root, r.Temp, cache}, r.inHome(slices.Concat(s.Writable, d.writable))...)
	policy := confine.Policy{
		Writable: writable,
		ReadOnly: append([]string{filepath.Join(root, ".ai", "config"), filepath.Join(root, ".git")}, r.besideWork(env)...),
		Hidden:   append(r.hidden(), r.doors(writable)...),
		Network:  d.network,
	}
	has, err := r.Confiner.Apply(ctx, s.Mode, policy, command)
	if errors.Is(err, confine.ErrUnavailable) {
		return tool.Faultf(tool.CodeUnsupported, "the settings require that tools are confined (execution.confine), and here %s", has)
	}
	if err == nil && has.Landlock > 0 {
		command.Env = append(command.Env, variables...)
	}
	return err
}

// root is the folder that a command may change: the project, or the workspace that
// stands for it.
func (r *Reach) root(env tool.Env) string {
	if env.Work != nil {
		return env.Work.Root
	}
	return r.Project
}

// besideWork is what a command in a workspace may not change, also where nothing but
// mounts bounds it: the git folder of the workspace, and the project itself.
func (r *Reach) besideWork(env tool.Env) []string {
	w := env.Work
	if w == nil {
		return nil
	}
	paths := []string{filepath.Join(w.Tree, ".git"), w.Git}
	if pathname.Has(r.Project, w.Root) {
		return paths // the project is a folder around it, such as the home
	}
	return append(paths, r.Project)
}

// makeProtected makes the folders that a command could make first and would keep: what is not there when it
// begins is neither hidden from it nor read-only. A project without .ai stays one.
func (r *Reach) makeProtected(root string) error {
	if r.Scratch != "" {
		if err := os.MkdirAll(r.Scratch, 0o700); err != nil {
			return err
		}
	}
	err := os.Mkdir(filepath.Join(root, ".ai", "config"), 0o755)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return err
}

// hidden are keys, what is trusted, what was spent, and the state of threads, of the user and of the project, and
// what this program keeps for a moment.
func (r *Reach) hidden() []string {
	hidden := []string{r.Scratch}
	for _, space := range []string{r.User, r.Project} {
		for _, name := range []string{"config/keys", "trust", "spend", "state"} {
			hidden = append(hidden, filepath.Join(space, ".ai", filepath.FromSlash(name)))
		}
	}
	return hidden
}

// doors are sockets of programs that do for whoever asks what no command may do itself: of the person's session, of
// terminals that go on, of agents that hold keys, of containers. A path that may be written is none, nor is a folder
// around it: the user's settings can name a socket.
func (r *Reach) doors(writable []string) []string {
	user := strconv.Itoa(os.Getuid())
	doors := []string{"/run/user/" + user, filepath.Join(r.Temp, "tmux-"+user), filepath.Join(r.Home, ".docker/run")}
	for _, name := range []string{"docker.sock", "podman", "containerd", "crio", "dbus", "systemd/private"} {
		doors = append(doors, "/run/"+name)
	}
	for _, pattern := range []string{"ssh-*", ".X11-unix/X*"} {
		found, _ := filepath.Glob(filepath.Join(r.Temp, pattern)) // the pattern is none of a stranger's
		doors = append(doors, found...)
	}
	return slices.DeleteFunc(doors, func(door string) bool {
		return slices.ContainsFunc(writable, func(path string) bool {
			return pathname.Has(door, pathname.Real(path)) // /var/run is /run
		})
	})
}

// inHome puts the home in the place of ~.
func (r *Reach) inHome(paths []string) []string {
	in := make([]string, 0, len(paths))
	for _, path := range paths {
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			path = filepath.Join(r.Home, rest)
		}
		if filepath.IsAbs(path) {
			in = append(in, path)
		}
	}
	return in
}

// caches are the variables that name a folder for what programs keep between their
// runs: that of the home cannot be written. It is the project's own, so that no tool of
// another project finds what was left there.
func (r *Reach) caches() (dir string, variables []string, err error) {
	if r.Cache == "" {
		return "", nil, nil
	}
	sum := sha256.Sum256([]byte(r.Project))
	dir = filepath.Join(r.Cache, hex.EncodeToString(sum[:8]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, err
	}
	return dir, []string{"XDG_CACHE_HOME=" + dir, "npm_config_cache=" + filepath.Join(dir, "npm")}, nil
}

// declaration is what a tool declares.
type declaration struct {
	network  confine.Network
	writable []string
}

// declared reads what the element nearest to the tool declares; the server of an MCP
// tool declares for itself.
func declared(p *chain.Plan) (declaration, error) {
	var d declaration
	network, err := confine.ParseNetwork(nearest(p, "network"))
	if err != nil {
		return d, err
	}
	d.network = network
	if d.network.Credentials, err = credentials(p); err != nil {
		return d, err
	}
	switch writable := nearest(p, "writable").(type) {
	case nil:
	case []any:
		for _, element := range writable {
			path, ok := element.(string)
			if !ok || !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "~/") {
				return d, fmt.Errorf("writable: %v is not a path that begins with / or ~/", element)
			}
			d.writable = append(d.writable, path)
		}
	default:
		return d, errors.New("writable: it is a list of paths")
	}
	return d, nil
}

// nearest is the metadata of the first element that has a key.
func nearest(p *chain.Plan, key string) any {
	if p.Chain.Server != nil {
		return p.Chain.Server.Doc.Metadata[key]
	}
	for _, e := range p.Chain.Elements {
		if value, ok := e.Doc.Metadata[key]; ok {
			return value
		}
	}
	return nil
}

// credentials are keys that the proxy puts into requests: each {url, header, value}, with
// variables in the value. They are not in the environment of the tool.
func credentials(p *chain.Plan) ([]confine.Credential, error) {
	list, ok := nearest(p, "credentials").([]any)
	if !ok {
		return nil, nil
	}
	var found []confine.Credential
	for _, element := range list {
		fields, _ := element.(map[string]any)
		text := func(key string) string { value, _ := fields[key].(string); return value }
		u, err := url.Parse(text("url"))
		if err != nil || u.Scheme != "https" || u.Host == "" || u.Path != "" || text("value") == "" {
			return nil, errors.New("credentials: each is {url: https://HOST, header, value}, such as {url: https://api.example.com, header: Authorization, value: \"Bearer ${NAME}\"}")
		}
		header := text("header")
		if header == "" {
			header = "Authorization"
		}
		found = append(found, confine.Credential{Host: u.Hostname(), URL: text("url"), Header: header, Value: p.Text(text("value"), nil)})
	}
	return found, nil
}

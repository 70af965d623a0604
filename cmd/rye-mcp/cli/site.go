package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/orchestrator/spawn"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/projectname"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/storeurl"
	"github.com/rye-mcp/rye-mcp/spaces/system"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/gitrepo"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// storeFlag is the flag that names the store.
const storeFlag = "store"

// storeWish is what was said about where threads are kept, beside the settings. The one of
// a command line is shared by all its commands.
type storeWish struct {
	flag string        // --store
	env  func() string // RYE_STORE
	// handed is what the starter of this process has handed over, which comes first; nil:
	// nobody has.
	handed *spawn.Inheritance
	of     string // the project that it is about
	// connections is how many to a server this process may have then; 0: one to work by, and
	// one for what is done beside that.
	connections int
	// moving is for who moves threads there, which is refused to others until it has ended.
	moving bool
	// ofThread is for the process of a thread, which does one thing after the other.
	ofThread bool
}

// takingStore takes the address of the store out of what else is known of the environment:
// no program that is started finds it there.
func (s System) takingStore() System {
	getenv := s.Getenv
	s.store = &storeWish{env: func() string { return getenv(storeurl.Variable) }}
	s.Getenv = func(name string) string {
		if name == storeurl.Variable {
			return ""
		}
		return getenv(name)
	}
	is := func(entry string) bool { return strings.HasPrefix(entry, storeurl.Variable+"=") }
	if slices.ContainsFunc(s.Environ, is) {
		s.Environ = slices.DeleteFunc(slices.Clone(s.Environ), is)
	}
	return s
}

// handedStore is a System whose processes keep threads where the starter of this one has
// said.
func (s System) handedStore(in spawn.Inheritance, project string) System {
	s.store = &storeWish{handed: &in, of: project}
	return s
}

// site is where the threads of a project are kept. The zero value is this machine.
type site struct {
	url      storeurl.URL // whole: with the password, and what variables of libpq say
	from     string       // what names it, for people
	project  string       // the name there
	key      string       // file of the fleet's private key; empty: the user's own
	fallback bool         // to this machine, while the server cannot be reached
}

// shared reports whether other machines have the threads, too.
func (s site) shared() bool { return !s.url.IsLocal() }

// siteOf finds out where the threads of a project are kept: as the starter of this process
// has said, by --store, by RYE_STORE, else by the user's settings.
func siteOf(ctx context.Context, sys System, roots resolve.Roots) (site, error) {
	if sys.store != nil && sys.store.handed != nil && sys.store.of == roots.Project {
		return handedSite(sys.store.handed.Store)
	}
	wished, from, err := sys.wishedStore()
	if err != nil || from != "" && wished.IsLocal() {
		return site{from: from}, err
	}
	set, _, err := config.New(roots).Read().Store(from != "")
	if err != nil {
		return site{}, err
	}
	s := site{url: wished, from: from, key: set.Key, fallback: set.Fallback}
	if from == "" {
		if s.url, s.from = set.URL, set.From; !s.shared() {
			return s, nil
		}
		if s.url, err = withPassword(ctx, sys, roots.Project, set); err != nil {
			return site{}, err
		}
	}
	if s.url, err = s.url.Complete(sys.Getenv); err != nil {
		return site{}, badStore(s.from, err)
	}
	s.project, err = projectName(sys, roots, set.Project)
	return s, err
}

// wishedStore is what flag and environment say; from is empty where they say nothing. Below
// a thread they say nothing: there they are a model's, who would choose where what it
// starts is known and paid for.
func (s System) wishedStore() (u storeurl.URL, from string, err error) {
	switch {
	case s.store == nil:
		return u, "", nil
	case s.store.handed != nil: // for another project
		if s.store.handed.Store == nil {
			return u, "", nil
		}
		u, err = storeurl.Parse(s.store.handed.Store.URL)
		return u, byStarter, err
	}
	text, from := s.store.flag, "--"+storeFlag
	if text == "" {
		text, from = s.store.env(), storeurl.Variable
	}
	if text == "" || belowThread(s) {
		return u, "", nil
	}
	if u, err = storeurl.Parse(text); err != nil {
		return u, from, badStore(from, err)
	}
	if from != storeurl.Variable && u.HasPassword() {
		return u, from, onCommandLine("--" + storeFlag)
	}
	return u, from, nil
}

// onCommandLine refuses a password where everybody on the machine can read it.
func onCommandLine(flag string) error {
	return &usageError{
		message: fmt.Sprintf("%s: %v", flag, storeurl.ErrPassword),
		try:     "give the URL without it, and the password by ~/.pgpass, PGPASSWORD or store.password_command; or the whole URL by " + storeurl.Variable,
	}
}

// badStore says which words cannot be used, without them.
func badStore(from string, err error) error {
	try := ""
	if bad, is := errors.AsType[*storeurl.Error](err); is {
		try = bad.Try()
	}
	return &usageError{message: fmt.Sprintf("%s: %v", from, err), try: try}
}

// byStarter names the process that has started this one.
const byStarter = "the starter of this process"

// handedSite is what was handed over. A starter that hands over nothing keeps threads on
// this machine.
func handedSite(in *spawn.Store) (site, error) {
	if in == nil {
		return site{}, nil
	}
	u, err := storeurl.Parse(in.URL)
	return site{url: u, from: byStarter, project: in.Project, key: in.Key}, err
}

// withPassword is the address of the settings with the password that a command gives.
func withPassword(ctx context.Context, sys System, project string, set config.Store) (storeurl.URL, error) {
	if set.Password == nil || set.URL.HasPassword() {
		return set.URL, nil
	}
	password, err := providerSource(sys, project).Key(ctx, *set.Password)
	if failed, is := errors.AsType[*provider.KeyError](err); is {
		key := strings.Replace(failed.From, "api_key_", "store.password_", 1)
		return set.URL, tool.Faultf(tool.CodeInvalidConfig, "the password of the thread store: %s (%s) %s", key, failed.Program, failed.Reason).
			WithTry("run the command of %s in ~/.ai/config/%s by hand: it has to print the password and nothing else", key, failed.File).
			WithHint("Tell the person: no thread can be started or looked at before that is mended.")
	}
	return set.URL.WithPassword(password), err
}

// maxGitConfig bounds what is read of a repository's configuration.
const maxGitConfig = 1 << 20

// projectName is what other machines know a project by. Set is that of the settings that
// count.
func projectName(sys System, roots resolve.Roots, set string) (string, error) {
	host, err := sys.Hostname()
	if err != nil {
		return "", fmt.Errorf("find the name of this host: %w", err)
	}
	standing := trust.ProjectOf(roots).Standing
	facts := projectname.Facts{
		Trusted: standing == trust.Accepted || standing == trust.Home, Set: set, Host: host, Path: roots.Project,
	}
	if facts.Trusted && set == "" {
		if repo, err := gitrepo.Find(roots.Project); err == nil { // else it has no origin
			facts.Below = repo.Prefix
			text, _ := regular.Read(filepath.Join(repo.Common, "config"), maxGitConfig) // nor where that cannot be read
			facts.Origin = projectname.Origin(string(text))
		}
	}
	name, err := projectname.Of(facts)
	if err != nil {
		return "", tool.Faultf(tool.CodeInvalidConfig, "%w", err).
			WithTry("rye-mcp config set store store.project team/app, with a name of your own, in each checkout").
			WithHint("Tell the person: the project needs store.project in .ai/config/%s.", config.StoreFile)
	}
	return name, nil
}

// spacesOf are the spaces of a project.
func spacesOf(project, user string) resolve.Roots {
	return resolve.Roots{Project: project, User: user, System: system.FS()}
}

// handOver is what the processes of a project's threads are told of the site; nil: nothing.
func (s site) handOver() *spawn.Store {
	if !s.shared() {
		return nil
	}
	return &spawn.Store{URL: s.url.Secret(), Project: s.project, Key: s.key}
}

// connections are those of this process to the server of a site.
func (s System) connections(of site) *connections {
	c := &connections{site: of, now: s.Now, migrations: s.Migrations}
	switch {
	case s.store == nil || s.store.handed == nil:
	case s.store.ofThread:
		c.alone = true
	default:
		c.most, c.moving = cmp.Or(s.store.connections, 2), s.store.moving
	}
	return c
}

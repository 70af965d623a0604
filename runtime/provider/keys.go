package provider

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

const (
	// keyTimeout is how long a command that gives a key may take: a person may have to
	// unlock something first.
	keyTimeout = 30 * time.Second
	// maxKey is the longest key in bytes. Tokens of identity providers have a few
	// kilobytes.
	maxKey = 16 << 10
	// keyLife is how long what a command has given is used again: for many threads that
	// are started together it runs once, and a key that was replaced is soon noticed.
	keyLife = time.Minute
	// failureLife is how long a command that gave no key is not run again: many threads ask
	// at the same time, and each run may take as long as keyTimeout.
	failureLife = 5 * time.Second
)

// keychainService is the service below which keys lie in the system's keychain.
const keychainService = "rye-mcp"

// KeyError says that a provider's key could not be had.
type KeyError struct {
	Provider string
	File     string // below config, that names the command
	From     string // api_key_command or api_key_keychain
	Program  string // that was run
	Reason   string // without anything that the program printed
	Store    string // the command that puts a key where it was looked for; empty: not known
}

func (e *KeyError) Error() string {
	return fmt.Sprintf("the key of model provider %s: %s (%s) %s", e.Provider, e.From, e.Program, e.Reason)
}

// Try is what a person can do.
func (e *KeyError) Try() string {
	if e.Store != "" {
		return "put the key in once: " + e.Store
	}
	return fmt.Sprintf("run the command of %s in ~/.ai/config/%s by hand: it has to print the key and nothing else", e.From, e.File)
}

// keyring runs the commands that give keys, and keeps what they gave in memory.
type keyring struct {
	run     func(context.Context, process.Command) (process.Result, error)
	environ func() []string
	now     func() time.Time
	system  string // runtime.GOOS

	mu    sync.Mutex // also held while a command runs: others wait for what it gives
	known map[string]knownKey
}

type knownKey struct {
	argv    string
	key     string
	failed  error // why there is none
	until   time.Time
	forever bool // the starter of this process has handed it over
}

// Adopt takes over keys that the starter of this process has handed to it, by the
// provider's name.
func (s *Source) Adopt(keys map[string]string) {
	s.keys.mu.Lock()
	defer s.keys.mu.Unlock()
	for name, key := range keys {
		s.keys.keep(name, knownKey{key: key, forever: true})
	}
}

func (k *keyring) keep(name string, key knownKey) {
	if k.known == nil {
		k.known = map[string]knownKey{}
	}
	k.known[name] = key
}

// Keys are the keys that a command has given for the provider of a reference,
// "provider/model", by the provider's name: its process cannot always run the command.
// Keys in variables are not among them.
func (r *Registry) Keys(ctx context.Context, ref string) (map[string]string, error) {
	p, _, err := r.split(ref)
	if err != nil || p == nil {
		return nil, err
	}
	key, err := r.KeyGiven(ctx, *p)
	if err != nil || key == "" {
		return nil, err
	}
	return map[string]string{p.Name: key}, nil
}

// KeyGiven is the key that a command gives for a provider, or for what is described as
// one; empty where none does, or a variable has the key.
func (s *Source) KeyGiven(ctx context.Context, p config.Provider) (string, error) {
	if s.inVariable(p) || !givenByCommand(p) {
		return "", nil
	}
	return s.Key(ctx, p)
}

// Key is the key of a provider, or of what is described as one; empty when it needs
// none, or its variable is not set. The error is a [*KeyError].
func (s *Source) Key(ctx context.Context, p config.Provider) (string, error) {
	switch {
	case s.inVariable(p):
		return s.getenv(p.APIKeyEnv), nil
	case !givenByCommand(p):
		return "", nil
	}
	return s.keys.of(ctx, p)
}

// KeyAgain is a key in place of one that was refused, as a command may give it; false
// where none can be had.
func (s *Source) KeyAgain(ctx context.Context, p config.Provider, refused string) (string, bool) {
	if s.inVariable(p) || !givenByCommand(p) {
		return "", false
	}
	key, err := s.keys.again(ctx, p, refused)
	return key, err == nil && key != refused
}

// inVariable reports whether the variable that holds a provider's key is set; blanks are no key.
func (s *Source) inVariable(p config.Provider) bool {
	return p.APIKeyEnv != "" && strings.TrimSpace(s.getenv(p.APIKeyEnv)) != ""
}

func givenByCommand(p config.Provider) bool {
	return p.APIKeyKeychain != "" || len(p.APIKeyCommand) > 0
}

// of runs the command of a provider, unless what it gave is still good, or it has just given
// none.
func (k *keyring) of(ctx context.Context, p config.Provider) (string, error) {
	failed := &KeyError{Provider: p.Name, File: cmp.Or(p.File, "agent/providers/"+p.Name+".yaml"), From: "api_key_command"}
	argv := p.APIKeyCommand
	if p.APIKeyKeychain != "" {
		failed.From = "api_key_keychain"
		if argv, failed.Store = keychain(k.system, p.APIKeyKeychain); argv == nil {
			failed.Program, failed.Reason = k.system, "has no keychain that is known; use api_key_command"
			return "", failed
		}
	}
	failed.Program = argv[0]
	k.mu.Lock()
	defer k.mu.Unlock()
	known, is := k.known[p.Name]
	if is && (known.forever || known.argv == fmt.Sprintf("%q", argv) && k.now().Before(known.until)) {
		return known.key, known.failed
	}
	done, err := k.run(ctx, process.Command{
		// Not in the project, whose files could tell the program what to do.
		Path: argv[0], Args: argv[1:], Env: k.environ(), Dir: string(filepath.Separator), Timeout: keyTimeout, MaxOutput: maxKey + 1,
	})
	key, why := keyIn(done)
	got := knownKey{argv: fmt.Sprintf("%q", argv), key: key, until: k.now().Add(keyLife)}
	switch {
	case err != nil:
		failed.Reason = "cannot be started: " + cause(err)
	case done.Cancelled && ctx.Err() != nil:
		return "", context.Cause(ctx)
	default:
		failed.Reason = why
	}
	if failed.Reason != "" {
		got.key, got.failed, got.until = "", failed, k.now().Add(failureLife)
	}
	k.keep(p.Name, got)
	return got.key, got.failed
}

// runFound runs a command whose program is what the PATH of its own environment has.
func runFound(ctx context.Context, c process.Command) (result process.Result, err error) {
	if c.Path, err = process.Find(c.Env, c.Path); err != nil {
		return result, err
	}
	return process.Run(ctx, c)
}

// again is a key in place of one that was refused, which the command may give as before.
func (k *keyring) again(ctx context.Context, p config.Provider, refused string) (string, error) {
	k.mu.Lock()
	if k.known[p.Name].key == refused {
		delete(k.known, p.Name)
	}
	k.mu.Unlock()
	return k.of(ctx, p)
}

// cause is the last error of a chain, without the command.
func cause(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err.Error()
}

// keychain is the command that reads a key from the keychain of a system, and the one
// that puts it in; nil where none is known. Sources: secret-tool(1) of libsecret,
// security(1) of macOS.
func keychain(system, account string) (read []string, store string) {
	switch system {
	case "linux":
		return []string{"secret-tool", "lookup", "service", keychainService, "account", account},
			fmt.Sprintf("secret-tool store --label 'rye-mcp %s' service %s account %s (package libsecret-tools)", account, keychainService, account)
	case "darwin":
		return []string{"security", "find-generic-password", "-s", keychainService, "-a", account, "-w"},
			fmt.Sprintf("security add-generic-password -s %s -a %s -w", keychainService, account)
	}
	return nil, ""
}

// keyIn is the key that a command printed, or why there is none.
func keyIn(done process.Result) (key, why string) {
	out := bytes.TrimSpace(done.Stdout)
	switch {
	case done.TimedOut:
		return "", fmt.Sprintf("did not end within %s", keyTimeout)
	case done.Signal != "":
		return "", "was ended by " + done.Signal
	case done.ExitCode != 0:
		return "", fmt.Sprintf("ended with exit code %d", done.ExitCode)
	case len(out) == 0:
		return "", "printed nothing"
	case done.Truncated || len(out) > maxKey:
		return "", fmt.Sprintf("printed more than a key: over %d bytes", maxKey)
	case bytes.ContainsAny(out, "\r\n"):
		return "", "printed more than one line"
	case !utf8.Valid(out) || strings.ContainsFunc(string(out), unicode.IsControl):
		return "", "printed what no header can carry"
	}
	return string(out), ""
}

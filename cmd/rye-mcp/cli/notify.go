package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/orchestrator/spawn"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/orchestrator/notify"
	"github.com/rye-mcp/rye-mcp/runtime/announce"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/threadlog"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// notifyCommand is the hidden verb, below thread, of the process that sends notices.
const notifyCommand = "notify"

// withNotices is the store of a project whose user may want to be notified. Without a
// file of settings for that a change costs one look for the file.
func (p *project) withNotices(sys System, inner store.Store, log zerolog.Logger) store.Store {
	file := notifyFile(p.resolver.Roots().User)
	return &announce.Store{
		Store: inner, Now: sys.Now,
		Wants: func(kind thread.NewsKind) bool {
			if _, err := os.Stat(file); err != nil {
				return false
			}
			set, _, err := p.config.Read().Notify()
			if err != nil {
				log.Warn().Err(err).Msg("notifications: the settings cannot be used")
			}
			return err == nil && set.Wants(string(kind))
		},
		Send: func() {
			if err := p.startSender(sys); err != nil {
				log.Warn().Err(err).Msg("notifications: no sender could be started; the next one sends what is due")
			}
		},
		Failed: func(err error) { log.Warn().Err(err).Msg("notifications: the budget could not be looked at") },
		Traces: p.traces(sys, log), Mirror: p.mirroring,
	}
}

func notifyFile(user string) string {
	return filepath.Join(user, ".ai", "config", filepath.FromSlash(config.NotifyFile))
}

// startSender starts a process that sends what is due. It belongs to no thread and to no
// server: both may end at once.
func (p *project) startSender(sys System) error {
	executable, err := sys.Executable()
	if err != nil {
		return err
	}
	secrets, err := handedToSenders(p)
	if err != nil {
		return err
	}
	_, err = process.Detach(process.Spec{
		Path: executable, Args: []string{threadCommand, notifyCommand, "--project", p.path},
		Env: senderEnv(slices.Concat(sys.Outer, sys.Environ)), Secrets: secrets, Dir: p.resolver.Roots().User, LogPath: p.notifyLog(),
	})
	return err
}

// handedToSenders is what a process that sends gets beside its environment.
func handedToSenders(p *project, more ...string) ([]string, error) {
	entries := append([]string{}, more...)
	handed := p.state.site.handOver()
	if handed == nil {
		return entries, nil
	}
	entry, err := handed.Entry()
	return append(entries, entry), err
}

func (p *project) notifyLog() string { return filepath.Join(p.state.Home().Dir, "notify.log") }

// senderEnv is what of an environment a sender, and the program that it runs, get: no
// keys, nothing that makes it a part of a thread, and what a desktop is found by.
func senderEnv(environ []string) []string {
	env, _ := process.ThreadEnv(environ)
	env = slices.DeleteFunc(env, func(entry string) bool {
		return strings.HasPrefix(entry, "RYE_") && !strings.HasPrefix(entry, "RYE_LOG_LEVEL=") && !strings.HasPrefix(entry, "RYE_CACHE_DIR=")
	})
	for _, entry := range environ {
		switch name, _, _ := strings.Cut(entry, "="); name {
		case "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS":
			env = append(env, entry)
		}
	}
	return env
}

// sendLeftovers starts a sender when something is due that nobody was started for, as
// when the process that made the change was killed at once.
func (p *project) sendLeftovers(ctx context.Context, sys System) error {
	sender, err := p.sender(sys, zerolog.Nop())
	if err != nil || sender == nil {
		return err
	}
	if due, err := sender.IsDue(ctx); err != nil || !due {
		return err
	}
	return p.startSender(sys) //nolint:contextcheck // it outlives the server
}

func newNotifyCommand(sys System, opts *options) *cobra.Command {
	return &cobra.Command{
		Use:   notifyCommand,
		Short: "Send the notifications that are due",
		Args:  usageArgs(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return sendNotices(cmd.Context(), sys, *opts) },
	}
}

// sendNotices is the whole of a sender's process.
func sendNotices(ctx context.Context, sys System, opts options) error {
	entries, err := process.InheritSecrets()
	if err != nil {
		return err
	}
	dir, err := projectDir(sys, opts)
	if err != nil {
		return err
	}
	sys = sys.handedStore(spawn.Inherited(entries), dir)
	state, err := newState(ctx, sys, dir)
	if err != nil {
		return err
	}
	if _, err := state.Find(); err != nil {
		return err
	}
	log := newLog(sys, threadlog.Wrap(sys.Stderr, filepath.Join(state.Home().Dir, "notify.log")))
	p, err := assembleAround(ctx, sys, state, log, threadStore, threadItems{})
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }()
	sender, err := p.sender(sys, log)
	if err != nil || sender == nil {
		return err
	}
	if err := sender.Run(ctx); err != nil {
		log.Error().Err(err).Msg("notifications: what is due is left for the next sender")
		return err
	}
	return nil
}

// sender sends by the user's settings; nil when there are none, or no store.
func (p *project) sender(sys System, log zerolog.Logger) (*notify.Sender, error) {
	user := p.resolver.Roots().User
	info, err := os.Stat(notifyFile(user))
	if err != nil || !p.store.IsOpen() {
		return nil, nil //nolint:nilerr // nobody wants to be told any more
	}
	set, _, err := p.config.Read().Notify()
	if err != nil {
		return nil, err
	}
	return &notify.Sender{
		Store: p.store, Settings: set, Since: info.ModTime(), Project: filepath.Base(p.path), Now: sys.Now, Log: log,
		Channels: notify.Ways(set, sys.Environ, user, p.path),
		Lease:    func() (life.Hold, error) { return p.life.Lease(notifyCommand) },
	}, nil
}

// notifications tells how the person is told of threads, and whether that can work.
func (d *doctor) notifications(context.Context) []finding {
	set, _, err := d.config.Notify()
	if err != nil {
		return nil // which the check of settings tells
	}
	var found []finding
	const where = "rye-mcp config edit notify"
	if len(set.Command) > 0 {
		if path, err := notify.Program(set.Command[0], d.user); err != nil {
			found = append(found, warnf(where, "the program of notifications cannot be run: %v", err))
		} else {
			found = append(found, okf("%s by %s", strings.Join(set.Events, ", "), path))
		}
	}
	if set.Desktop {
		name := notify.DesktopProgram(runtime.GOOS)
		if _, err := exec.LookPath(name); err != nil {
			found = append(found, warnf("install "+name+", or "+where, "notifications on the desktop need %s, which is not there", name))
		} else {
			found = append(found, okf("%s by %s", strings.Join(set.Events, ", "), name))
		}
	}
	if set.Webhook != "" {
		found = append(found, okf("%s by the webhook", strings.Join(set.Events, ", ")))
	}
	if len(found) == 0 {
		return []finding{okf("nobody is told outside of a client that a thread has ended or asks; %s changes that", where)}
	}
	return found
}

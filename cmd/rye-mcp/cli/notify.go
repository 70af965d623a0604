package cli

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/orchestrator/notify"
	"github.com/rye-mcp/rye-mcp/runtime/announce"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
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
			if err := p.startNotifier(sys); err != nil {
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

// startNotifier starts a process that sends the notices that are due.
func (p *project) startNotifier(sys System) error {
	return p.startSender(sys, notifyCommand, senderEnv(slices.Concat(sys.Outer, sys.Environ)))
}

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

// sendLeftNotices starts a sender when something is due that nobody was started for, as
// when the process that made the change was killed at once.
func (p *project) sendLeftNotices(ctx context.Context, sys System) error {
	sender, err := p.sender(sys, zerolog.Nop())
	if err != nil || sender == nil {
		return err
	}
	if due, err := sender.IsDue(ctx); err != nil || !due {
		return err
	}
	return p.startNotifier(sys) //nolint:contextcheck // it outlives the server
}

func newNotifyCommand(sys System, opts *options) *cobra.Command {
	return newSenderCommand(sys, opts, notifyCommand, "Send the notifications that are due", func(ctx context.Context, with sending) error {
		sender, err := with.sender(with.sys, with.log)
		if err != nil || sender == nil {
			return err
		}
		return sender.Run(ctx)
	})
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
		if path, err := notify.Program(set.Command[0], d.environ(), d.user); err != nil {
			found = append(found, warnf(where, "the program of notifications cannot be run: %v", err))
		} else {
			found = append(found, okf("%s by %s", strings.Join(set.Events, ", "), path))
		}
	}
	if set.Desktop {
		name := notify.DesktopProgram(runtime.GOOS)
		if _, err := process.Find(d.environ(), name); err != nil {
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

package cli

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/threadlog"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// startSender starts a process that sends what is due of the project: notices, spans or
// copies of threads. It belongs to no thread and to no server: both may end at once. Its
// verb is a hidden command below thread, and names its lease and its log.
func (p *project) startSender(sys System, verb string, env []string, handed ...string) error {
	executable, err := sys.Executable()
	if err != nil {
		return err
	}
	secrets, err := handedToSenders(p, handed...)
	if err != nil {
		return err
	}
	_, err = process.Detach(process.Spec{
		Path: executable, Args: []string{threadCommand, verb, "--project", p.path},
		Env: env, Secrets: secrets, Dir: p.resolver.Roots().User, LogPath: senderLog(p.state, verb),
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

func senderLog(state *projectState, verb string) string {
	return filepath.Join(state.Home().Dir, verb+".log")
}

// isSending reports whether a process of a verb sends at the moment. It looks for what is
// due again before it ends, so that nobody need start another.
func (p *project) isSending(verb string) (bool, error) {
	hold, err := p.life.Lease(verb)
	if errors.Is(err, life.ErrHeld) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, hold.Release()
}

// sending is what a sender's process sends with.
type sending struct {
	*project
	sys       System
	variables []string // NAME=value: what its starter has handed it
	log       zerolog.Logger
}

// newSenderCommand is the hidden command of a sender's process.
func newSenderCommand(sys System, opts *options, verb, short string, send func(context.Context, sending) error) *cobra.Command {
	return &cobra.Command{
		Use:   verb,
		Short: short,
		Args:  usageArgs(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return runSender(cmd.Context(), sys, *opts, verb, send) },
	}
}

// runSender is the whole of a sender's process.
func runSender(ctx context.Context, sys System, opts options, verb string, send func(context.Context, sending) error) error {
	in, err := inherit()
	if err != nil {
		return err
	}
	dir, err := projectDir(sys, opts)
	if err != nil {
		return err
	}
	sys = sys.handedStore(in, dir).withSecrets(in.Variables)
	state, _, err := homeOf(ctx, sys, dir)
	if err != nil {
		return err
	}
	log := newLog(sys, threadlog.Wrap(sys.Stderr, senderLog(state, verb)))
	p, err := assembleAround(ctx, sys, state, log, threadStore, threadItems{})
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }()
	if err := send(ctx, sending{project: p, sys: sys, variables: in.Variables, log: log}); err != nil {
		log.Error().Err(err).Msg(verb + ": not all was sent; what is due is left for the next sender")
		return err
	}
	return nil
}

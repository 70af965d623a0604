package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

type trustFlags struct {
	yes, diff, revoke, adoptState, asJSON bool
	follow                                string
}

func newTrustCommand(sys System, opts *options) *cobra.Command {
	var flags trustFlags
	cmd := &cobra.Command{
		Use:   "trust [DIR]",
		Short: "Look at what a project brings, and let its settings count",
		Long: `Show whose keys sign the items of a project and what its settings would loosen,
and ask whether they may. Settings that you accept are kept as a copy in your user
space: from then on the copy holds. Edits of the project that tighten it count at once,
edits that loosen it when you accept them, here or when "rye-mcp run" asks.

Until then a project can make limits lower and checks stricter, and no more: it
names no provider, no host, no key and no price, and brings no hook.

Programs of the folder that nobody signs (.venv, node_modules) and its .env count with
them.

Items are another matter: they run when a key you trust signed them (rye-mcp keys).
So is the state of threads: it is believed when your own state key signed it, and
--adopt-state adds another key for this project.

With --json standard output has what came of it alone; what you are asked about stands on
standard error.`,
		Example: `  rye-mcp trust                     # this project
  rye-mcp trust ~/src/clone --diff  # only look
  rye-mcp trust --follow c6fcdd04   # what this key signs from now on`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			o := *opts
			if len(args) == 1 {
				o.project = args[0]
			}
			return runTrust(sys, o, flags)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	cmd.Flags().BoolVar(&flags.diff, "diff", false, "show what does not count, and ask nothing")
	cmd.Flags().BoolVar(&flags.yes, "yes", false, "accept without being asked; on a branch of somebody else's fork this trusts its author")
	cmd.Flags().BoolVar(&flags.revoke, "revoke", false, "forget what was accepted")
	cmd.Flags().StringVar(&flags.follow, "follow", "", "accept from now on what this key signed, but for hosts, key variables and headers")
	cmd.Flags().BoolVar(&flags.adoptState, "adopt-state", false, "believe what threads of another key have left here, such as your own from another home")
	jsonFlag(cmd, &flags.asJSON)
	cmd.MarkFlagsMutuallyExclusive("diff", "yes")
	cmd.MarkFlagsMutuallyExclusive("diff", "revoke", "follow", "adopt-state")
	return cmd
}

func runTrust(sys System, opts options, flags trustFlags) error {
	roots, err := openRoots(sys, opts)
	if err != nil {
		return err
	}
	t := trusting{sys: sys, opts: opts, roots: roots, trustFlags: flags}
	if flags.diff {
		return t.showOffer()
	}
	if err := mayDecide(sys, whatSettings); err != nil {
		return err
	}
	switch {
	case flags.revoke:
		return t.revoke()
	case flags.adoptState:
		return t.adoptState()
	case flags.follow != "":
		return t.followKey()
	}
	return t.acceptSettings()
}

// trusting is one call of trust.
type trusting struct {
	sys   System
	opts  options
	roots resolve.Roots
	trustFlags
}

// screen is where a person sees what they are asked about. With --json standard output has
// the JSON alone, so that stands on standard error, where somebody is asked at all.
func (t trusting) screen() display {
	switch {
	case !t.asJSON:
		return newDisplay(t.sys, t.opts)
	case t.diff, t.yes:
		return display{out: io.Discard}
	}
	return newDisplayOn(t.sys, t.sys.Stderr, t.opts)
}

// The decisions that are a person's.
const (
	whatSettings   = "what settings count"
	whoseSignature = "whose signatures count"
)

// mayDecide refuses decisions below a thread, whoever it says it is.
func mayDecide(sys System, about string) error {
	if !belowThread(sys) {
		return nil
	}
	return tool.Faultf(tool.CodePermissionDenied, "a thread has started this, and %s is for a person to decide", about).
		WithHint("ask the person")
}

// showOffer is trust --diff.
func (t trusting) showOffer() error {
	o, err := newOffer(t.sys, t.roots)
	if err != nil {
		return err
	}
	if t.asJSON {
		return t.tell(o, showed, "")
	}
	return o.show(t.screen())
}

// acceptSettings shows what the settings of a project would loosen, and keeps them
// when the person says so.
func (t trusting) acceptSettings() error {
	o, err := newOffer(t.sys, t.roots)
	if err != nil {
		return err
	}
	if err := o.trustable(); err != nil {
		return err
	}
	if err := o.show(t.screen()); err != nil {
		return err
	}
	if !t.yes && len(o.leftOut)+len(o.programs) == 0 && !onTerminal(t.sys.Stdin) {
		return t.tell(o, nothingThere, "There is nothing to accept.")
	}
	yes, err := t.agreed("\nAccept what is shown?", "rye-mcp trust --diff shows the same; --yes accepts it")
	if err != nil {
		return err
	}
	if !yes {
		return t.tell(o, declined, "Nothing was accepted.")
	}
	if err := o.accept(trust.AcceptAll); err != nil {
		return err
	}
	return t.tell(o, accepted, "You have accepted what is shown of %s.", o.known.Place)
}

// agreed asks the person, unless --yes has said it.
func (t trusting) agreed(question, otherwise string) (bool, error) {
	if t.yes {
		return true, nil
	}
	return confirm(t.sys, question, otherwise)
}

func (t trusting) revoke() error {
	gone, err := trust.Revoke(t.roots)
	if err != nil {
		return keepingFault(err)
	}
	var o *offer
	if t.asJSON { // a project that cannot be read is no reason not to say that it was forgotten
		if o, err = newOffer(t.sys, t.roots); err != nil {
			return err
		}
	}
	if !gone {
		return t.tell(o, nothingThere, "Nothing was accepted of %s.", t.roots.Project)
	}
	return t.tell(o, revoked, "The settings of %s may tighten what holds without them, and no more.", t.roots.Project)
}

// followKey accepts in advance what a key signs, which must be a trusted one.
func (t trusting) followKey() error {
	o, err := newOffer(t.sys, t.roots)
	if err != nil {
		return err
	}
	if err := o.trustable(); err != nil {
		return err
	}
	key, err := o.followable(t.follow)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(t.screen().out, "Settings files of %s that key %s (%s) signed would count whenever they change,\n"+
		"but for hosts, key variables and headers.\n", o.known.Place, key.Fingerprint, plain.Line(key.Owner)); err != nil {
		return err
	}
	yes, err := t.agreed("Follow this key?", "rye-mcp trust --follow "+key.Fingerprint+" --yes")
	if err != nil {
		return err
	}
	if !yes {
		return t.tell(o, declined, "Nothing was accepted.")
	}
	if err := trust.Follow(t.roots, key.Fingerprint, t.sys.Now()); err != nil {
		return keepingFault(err)
	}
	return t.tell(o, followed, "Settings that key %s signs count from now on.", key.Fingerprint)
}

// followable is the trusted key that a fingerprint, or the beginning of one, names.
func (o *offer) followable(fingerprint string) (trust.Entry, error) {
	found, err := o.keyring.Show(fingerprint)
	if err != nil {
		return trust.Entry{}, tool.Faultf(tool.CodeNotFound, "%w", err).WithHint("rye-mcp keys list")
	}
	i := slices.IndexFunc(found, func(e trust.Entry) bool { return e.State == trust.Trusted || e.State == trust.Own })
	if i < 0 {
		return trust.Entry{}, tool.Faultf(tool.CodeIntegrity, "key %s is not trusted: %s", found[0].Fingerprint, found[0].Reason).
			WithHint("rye-mcp keys trust %s, if you know whose key it is", found[0].Path)
	}
	return found[i], nil
}

func tellTrust(sys System, format string, args ...any) error {
	_, err := fmt.Fprintln(sys.Stdout, plain.Line(fmt.Sprintf(format, args...))) // a folder may be called anything
	return err
}

// confirm asks the person a question whose answer is no unless it is yes.
func confirm(sys System, question, otherwise string) (bool, error) {
	if !onTerminal(sys.Stdin) {
		return false, &usageError{message: "there is nobody to ask: standard input is no terminal", try: otherwise}
	}
	answer, err := newQuestions(sys, sys.Stderr).ask(question + " [y/N]")
	answer = strings.ToLower(answer)
	return answer == "y" || answer == "yes", err
}

// keepingFault says what to do when the user space cannot keep a decision.
func keepingFault(err error) error {
	if record, ok := errors.AsType[*trust.RecordError](err); ok {
		return &usageError{message: record.Error(), try: "USER_SPACE=$(mktemp -d), and settings for this machine in its .ai/config"}
	}
	return err
}

// offer is what a project brings, at one moment.
type offer struct {
	sys      System
	roots    resolve.Roots
	known    trust.Project
	snapshot trust.Snapshot
	keyring  *trust.Keyring
	leftOut  []config.Notice // key by key
	programs []string        // of the folder, where they do not count yet
}

func newOffer(sys System, roots resolve.Roots) (*offer, error) {
	snapshot, err := trust.Take(roots.Project)
	if err != nil {
		return nil, err
	}
	keyring, err := newGate(sys, roots).Keyring()
	if err != nil {
		return nil, err
	}
	o := &offer{
		sys: sys, roots: roots, known: trust.ProjectOf(roots), snapshot: snapshot, keyring: keyring,
		leftOut: config.Preview(roots, snapshot).Read().Changes(),
	}
	if !o.known.Programs() {
		o.programs = trust.ProgramsIn(roots.Project)
	}
	return o, nil
}

// trustable refuses projects of which nothing can be accepted.
func (o *offer) trustable() error {
	switch o.known.Standing {
	case trust.Home:
		return &usageError{message: fmt.Sprintf("%s is your user space: its settings are your own, and there is no project beside them", o.known.Place)}
	case trust.Around:
		return &usageError{
			message: fmt.Sprintf("your user space %s lies in this project, so whoever can write the one can write the other", o.roots.User),
			try:     "a user space outside of it: USER_SPACE=DIR",
		}
	case trust.Nobody:
		return &usageError{message: "there is no user space to keep a decision in", try: "set HOME or USER_SPACE"}
	case trust.Stranger, trust.Accepted:
	}
	return nil
}

// accept keeps the snapshot that was shown, with [trust.Accept] or, where the programs of the folder were shown, too,
// [trust.AcceptAll].
func (o *offer) accept(keep func(resolve.Roots, trust.Snapshot, time.Time) error) error {
	if err := config.CheckSnapshot(o.roots, o.snapshot); err != nil {
		return tool.Faultf(tool.CodeInvalidConfig, "settings with an error are not kept: %w", err).WithHint("mend the file, then rye-mcp trust")
	}
	return keepingFault(keep(o.roots, o.snapshot, o.sys.Now()))
}

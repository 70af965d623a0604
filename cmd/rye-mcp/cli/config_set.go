package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func newConfigSetCommand(sys System, opts *options) *cobra.Command {
	var user bool
	cmd := &cobra.Command{
		Use:   "set SETTINGS KEY VALUE",
		Short: "Change one value in the project's settings, or in your own with --user",
		Long: `Write one value into a settings file of the project, or of your user space with
--user. The value is YAML; comments stay. A value that you set in a project counts at
once, as if you had accepted it with rye-mcp trust.`,
		Example: `  rye-mcp config set agent provider.default openai
  rye-mcp config set resilience limits.spend 2.00
  rye-mcp config set --user resilience limits.daily_spend 20
  rye-mcp config set providers/openai 'models."gpt-5.4".context_window' 200000`,
		Args:              usageArgs(cobra.ExactArgs(3)),
		ValidArgsFunction: completer{sys: sys, opts: opts}.settings,
		RunE: func(_ *cobra.Command, args []string) error {
			w, err := newWriting(sys, *opts, args[0], user)
			if err != nil {
				return err
			}
			return w.set(args[1], args[2])
		},
	}
	cmd.Flags().BoolVar(&user, "user", false, "write your own settings, which hold in every project")
	return cmd
}

func newConfigEditCommand(sys System, opts *options) *cobra.Command {
	var user bool
	cmd := &cobra.Command{
		Use:   "edit SETTINGS",
		Short: "Edit a settings file of the project, or your own with --user",
		Long: `Open a settings file in $VISUAL or $EDITOR. The text you save is checked, written,
and accepted as with rye-mcp trust. Where the file says more that you have not accepted
yet, that is shown and asked about.`,
		Args:              usageArgs(cobra.ExactArgs(1)),
		ValidArgsFunction: completer{sys: sys, opts: opts}.settings,
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := newWriting(sys, *opts, args[0], user)
			if err != nil {
				return err
			}
			return w.edit(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&user, "user", false, "edit your own settings, which hold in every project")
	return cmd
}

// writing is a settings file that is about to be changed.
type writing struct {
	sys   System
	opts  options
	roots resolve.Roots
	user  bool   // the user's file, or one that is the user's
	name  string // of the settings
	file  string // below .ai/config
	dir   string // of the space
}

func newWriting(sys System, opts options, name string, user bool) (*writing, error) {
	if err := mayDecide(sys, whatSettings); err != nil {
		return nil, err
	}
	roots, err := openRoots(sys, opts)
	if err != nil {
		return nil, err
	}
	w := &writing{sys: sys, opts: opts, roots: roots, name: name, dir: roots.Project}
	if w.file, err = config.FileOf(name); err != nil {
		return nil, unknownSettings(err)
	}
	w.user = user || trust.ProjectOf(roots).Standing == trust.Home
	if w.user {
		w.dir = roots.User
	}
	return w, nil
}

func unknownSettings(err error) error {
	if unknown, ok := errors.AsType[*config.UnknownSettingsError](err); ok {
		return tool.Faultf(tool.CodeNotFound, "%w", err).WithHint("%s", strings.TrimSpace("rye-mcp config show "+unknown.Nearest))
	}
	return err
}

func (w *writing) space() item.Space {
	if w.user {
		return item.User
	}
	return item.Project
}

func (w *writing) path() string {
	return filepath.Join(w.dir, ".ai", "config", filepath.FromSlash(w.file))
}

// set writes one value. Of a file that says more than its user has accepted, only
// this value is accepted.
func (w *writing) set(keyText, value string) error {
	key, err := config.ParseKey(keyText)
	if err != nil {
		return &usageError{message: err.Error(), try: lookAt(w.name)}
	}
	before, _, err := trust.ReadSettings(w.space(), w.dir, w.file)
	if err != nil {
		return fmt.Errorf("settings %s: %w", w.path(), err)
	}
	after, err := w.changed(before, key, value)
	if err != nil {
		return err
	}
	accepted := after
	if known := trust.ProjectOf(w.roots).Record.Snapshot().Files[w.file]; !w.user && string(known) != string(before) {
		if accepted, err = w.changed(known, key, value); err != nil {
			return err
		}
	}
	if err := w.counts(accepted, key); err != nil {
		return err
	}
	if err := w.keep(after, accepted); err != nil {
		return err
	}
	w.warnUnsigned(before)
	return tellTrust(w.sys, "%s: %s is %s", w.path(), keyText, plain.Line(value))
}

// changed is the content of a file with a value set, which must hold to the schema.
func (w *writing) changed(before []byte, key []string, value string) ([]byte, error) {
	after, err := config.Set(before, key, value)
	if err != nil {
		return nil, fmt.Errorf("settings %s: %w", w.path(), err)
	}
	warnings, err := config.CheckFile(w.name, w.path(), after)
	if err != nil {
		return nil, tool.Faultf(tool.CodeInvalidConfig, "%w", err).WithHint("%s shows the values that hold", lookAt(w.name))
	}
	about := fmt.Sprintf(": %s: ", strings.Join(key, "."))
	for _, warning := range warnings {
		if strings.Contains(warning, about) || strings.Contains(warning, fmt.Sprintf(": %s: unknown", key[0])) {
			return nil, tool.Faultf(tool.CodeInvalidConfig, "%s", warning).WithHint("%s", lookAt(w.name))
		}
	}
	return after, nil
}

// counts refuses a value of a project that would not count there, accepted or not.
func (w *writing) counts(accepted []byte, key []string) error {
	if w.user {
		return nil
	}
	would := trust.ProjectOf(w.roots).Record.Snapshot().With(w.file, accepted)
	for _, n := range config.PreviewAccepted(w.roots, would).Read().LeftOut() {
		if n.UserOnly && slices.Equal(n.Key[:min(len(n.Key), len(key))], key) {
			return &usageError{
				message: fmt.Sprintf("%s is read from the user space only", strings.Join(key, ".")),
				try:     fmt.Sprintf("rye-mcp config set --user %s %s …", w.name, strings.Join(key, ".")),
			}
		}
	}
	return nil
}

// keep writes the file and accepts a version of it.
func (w *writing) keep(content, accepted []byte) error {
	known := trust.ProjectOf(w.roots)
	if err := trust.WriteSettings(w.space(), w.dir, w.file, content); err != nil {
		return fmt.Errorf("settings %s: %w", w.path(), err)
	}
	if w.user {
		return nil
	}
	err := trust.Accept(w.roots, known.Record.Snapshot().With(w.file, accepted), w.sys.Now())
	if errors.Is(err, trust.ErrNotTrustable) {
		_, _ = fmt.Fprintf(w.sys.Stderr, "Warning: it is written, and counts only as far as it tightens: %v\n", err)
		return nil
	}
	return keepingFault(err)
}

// warnUnsigned says what a signature was good for that a change has ended: hooks must have
// one, and those who follow the key of others' settings are asked again.
func (w *writing) warnUnsigned(before []byte) {
	if w.name == config.HookSettings {
		settings := config.New(w.roots).Read()
		_, _, err := hook.Load(settings, newGate(w.sys, w.roots).Once(settings.Integrity))
		if refused, ok := errors.AsType[*trust.RefusedError](err); ok && refused.Subject.Path == w.path() {
			_, _ = fmt.Fprintf(w.sys.Stderr, "Warning: no thread starts: %s; %s\n", plain.Line(refused.Error()), plain.Line(refused.Try()))
		}
		return
	}
	if signature, _ := sign.Split(before, ".yaml"); signature != nil {
		_, _ = fmt.Fprintf(w.sys.Stderr, "Warning: %s: its signature is gone; rye-mcp sign, with this path, makes another\n", plain.Line(w.path()))
	}
}

// edit opens the file in the person's editor.
func (w *writing) edit(ctx context.Context) error {
	before, found, err := trust.ReadSettings(w.space(), w.dir, w.file)
	if err != nil {
		return fmt.Errorf("settings %s: %w", w.path(), err)
	}
	if !found {
		before = fmt.Appendf(nil, "# Settings %q; what holds now: %s\n", w.name, lookAt(w.name))
	}
	unaccepted := w.unaccepted(before)
	after, kept, err := w.edited(ctx, before)
	if err != nil || string(after) == string(before) {
		return err
	}
	if err := w.check(before, after); err != nil {
		return tool.Faultf(tool.CodeInvalidConfig, "%w", err).WithHint("what you wrote is kept in %s", kept)
	}
	_ = os.Remove(kept) // it is a copy
	if !w.user && len(unaccepted) > 0 {
		left := w.unaccepted(after)
		if err := writeLoosened(newDisplay(w.sys, w.opts), w.roots.Project, left); err != nil {
			return err
		}
		yes, err := confirm(w.sys, "\nThis file said more than you have accepted. Accept all of it?", "rye-mcp trust")
		if err != nil {
			return err
		}
		if !yes {
			if err := trust.WriteSettings(w.space(), w.dir, w.file, after); err != nil {
				return fmt.Errorf("settings %s: %w", w.path(), err)
			}
			return tellTrust(w.sys, "%s: written, and not accepted", w.path())
		}
	}
	if err := w.keep(after, after); err != nil {
		return err
	}
	w.warnUnsigned(before)
	return tellTrust(w.sys, "%s: written", w.path())
}

// check refuses what set would: errors, and warnings that the file did not give before. The
// others are shown, since they may be about a newer version's settings.
func (w *writing) check(before, after []byte) error {
	warnings, err := config.CheckFile(w.name, w.path(), after)
	if err != nil {
		return err
	}
	earlier, _ := config.CheckFile(w.name, w.path(), before) // a file that could not be read warned of nothing
	known := map[string]bool{}
	for _, warning := range earlier {
		known[aboutKey(warning)] = true
	}
	for _, warning := range warnings {
		if !known[aboutKey(warning)] {
			return errors.New(warning)
		}
	}
	for _, warning := range warnings {
		_, _ = fmt.Fprintf(w.sys.Stderr, "Warning: %s\n", plain.Line(warning))
	}
	return nil
}

// aboutKey is a warning without the file and line that it begins with, as lines move.
func aboutKey(warning string) string {
	_, about, _ := strings.Cut(warning, ": ")
	return about
}

// unaccepted is what a version of the file says and what does not count.
func (w *writing) unaccepted(content []byte) []config.Notice {
	if w.user {
		return nil
	}
	var about []config.Notice
	for _, n := range config.Preview(w.roots, trust.Snapshot{}.With(w.file, content)).Read().Changes() {
		if n.File == w.file && !n.UserOnly {
			about = append(about, n)
		}
	}
	return about
}

// edited is what the person makes of the settings, and the file in which that is kept.
func (w *writing) edited(ctx context.Context, before []byte) (after []byte, file string, err error) {
	return editText(ctx, w.sys, before, path.Base(w.file), "rye-mcp config set "+w.name+" KEY VALUE")
}

// newDraft makes a file where no command of a running thread can change what the person is about to keep.
func newDraft(scratch, name string) (*os.File, error) {
	if scratch != "" {
		if err := os.MkdirAll(scratch, 0o700); err != nil {
			return nil, err
		}
	}
	return os.CreateTemp(scratch, "rye-mcp-*-"+name)
}

// editText is what the person makes of a text in an editor, and the file in which it is
// kept. Try is what can be done where nobody can edit.
func editText(ctx context.Context, sys System, before []byte, name, try string) (after []byte, file string, err error) {
	if !onTerminal(sys.Stdin) {
		return nil, "", &usageError{message: "there is nobody to edit: standard input is no terminal", try: try}
	}
	draft, err := newDraft(scratchFolder(sys), name)
	if err != nil {
		return nil, "", err
	}
	_, err = draft.Write(before)
	if err = errors.Join(err, draft.Close()); err != nil {
		return nil, "", errors.Join(err, os.Remove(draft.Name()))
	}
	editor := sys.Getenv("VISUAL")
	if editor == "" {
		editor = sys.Getenv("EDITOR")
	}
	if editor == "" {
		editor = "vi"
	}
	// As git does: the variable may hold arguments.
	cmd := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "sh", draft.Name()) //nolint:gosec // the person's own editor
	cmd.Stdin, cmd.Stdout, cmd.Stderr = sys.Stdin, sys.Stdout, sys.Stderr
	if err := cmd.Run(); err != nil {
		return nil, draft.Name(), fmt.Errorf("editor %s: %w; nothing was changed", editor, err)
	}
	after, err = os.ReadFile(draft.Name())
	return after, draft.Name(), err
}

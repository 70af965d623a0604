package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// renewFlags belong to sign --renew.
type renewFlags struct {
	renew, yes bool
	signers    []string
}

// renewal is one run of sign --renew.
type renewal struct {
	sys     System
	opts    options
	flags   renewFlags
	actions *action.Actions
	own     *sign.Key
	d       display
}

// renewed is what sign --renew writes with --json.
type renewed struct {
	action.SignResult
	Left []action.Older `json:"left"` // not signed anew
}

// signAnew replaces older signatures, which are for no kind and id.
func signAnew(ctx context.Context, sys System, opts options, flags renewFlags, asJSON bool) error {
	if belowThread(sys) {
		return tool.Faultf(tool.CodePermissionDenied, "a thread has started this, and a person must say what an older signature was for").
			WithHint("ask the person")
	}
	roots, err := openRoots(sys, opts)
	if err != nil {
		return err
	}
	own, err := sign.Load(roots.User)
	if err != nil {
		return err
	}
	actions := action.New(action.Deps{
		Resolver: resolve.New(roots), Now: sys.Now, Trust: newGate(sys, roots).With(config.New(roots).Read().Integrity),
		Key: func() (*sign.Key, error) { return own, nil },
	})
	older, err := actions.Older(ctx)
	if err != nil {
		return err
	}
	r := renewal{sys: sys, opts: opts, flags: flags, actions: actions, own: own, d: newDisplay(sys, opts)}
	if asJSON {
		r.d.out = sys.Stderr // the object has standard output to itself
	}
	chosen, left, err := r.choose(older)
	if err != nil {
		return err
	}
	done, err := actions.Renew(ctx, chosen)
	if err != nil {
		return err
	}
	return conclude(sys, asJSON, renewed{*done, left}, done.Success, func() error { return r.tell(done, left) })
}

// choose asks which of the files are signed anew: those of the own key together,
// those of each other signer by itself.
func (r renewal) choose(older []action.Older) (chosen, left []action.Older, err error) {
	own, others := r.own.Fingerprint(), []string{}
	groups := map[string][]action.Older{}
	for _, o := range older {
		if o.Blocked != "" {
			left = append(left, o)
			continue
		}
		if groups[o.Signer] == nil && o.Signer != own {
			others = append(others, o.Signer)
		}
		groups[o.Signer] = append(groups[o.Signer], o)
	}
	slices.Sort(others)
	for _, signer := range append([]string{own}, others...) {
		group := groups[signer]
		if len(group) == 0 {
			continue
		}
		yes, err := r.wanted(signer, group)
		if err != nil {
			return nil, nil, err
		}
		if yes {
			chosen = append(chosen, group...)
		} else {
			left = append(left, group...)
		}
	}
	return chosen, left, nil
}

// wanted shows what one key has signed and asks whether it is signed anew. Items
// that others signed become the user's own claim, so --yes alone does not cover it.
func (r renewal) wanted(signer string, group []action.Older) (bool, error) {
	title, question := "You have signed these", fmt.Sprintf("Sign %s anew with your key?", counted(len(group), "file"))
	named := slices.ContainsFunc(r.flags.signers, func(s string) bool { return s != "" && strings.HasPrefix(signer, strings.ToLower(s)) })
	foreign := signer != r.own.Fingerprint()
	if foreign {
		title = fmt.Sprintf("Key %s of %s has signed these", signer, plain.Line(group[0].Owner))
		question = fmt.Sprintf("Sign %s of %s with YOUR key, as your own?", counted(len(group), "file"), plain.Line(group[0].Owner))
	}
	if _, err := fmt.Fprintf(r.d.out, "%s, for no kind and id; they are taken for what they stand as now:\n", title); err != nil {
		return false, err
	}
	if err := olderTable(group).write(unbounded(r.d)); err != nil {
		return false, err
	}
	switch {
	case r.flags.yes && (!foreign || named):
		return true, nil
	case foreign && (r.flags.yes || !onTerminal(r.sys.Stdin)):
		return false, nil // they are named as left, with what to do
	}
	return confirm(r.sys, question, "rye-mcp sign --renew --yes signs what is listed")
}

// threadsFolder holds what threads leave about themselves, which can be much.
const threadsFolder = "agent/threads/"

func olderTable(list []action.Older) *table {
	t := &table{}
	about := 0
	for _, o := range list {
		if o.Kind == string(item.Knowledge) && strings.HasPrefix(o.ID, threadsFolder) {
			about++
			continue
		}
		var note []string
		if o.Kind == sign.KindTrustedKey {
			note = append(note, "the key of "+o.Owner+", which you trusted")
		}
		if len(o.May) > 0 {
			note = append(note, "may "+strings.Join(o.May, " "))
		}
		if o.Blocked != "" {
			note = append(note, o.Blocked)
		}
		when := ""
		if !o.SignedAt.IsZero() {
			when = o.SignedAt.Format(time.DateOnly)
		}
		t.add(text(strings.ReplaceAll(o.Kind, "_", " ")), text(o.ID), text(string(o.Space)), text(when), text(strings.Join(note, "; ")))
	}
	if about > 0 {
		t.add(text("knowledge"), text(threadsFolder+"**"), text("project"), text(""), text(fmt.Sprintf("%d about threads", about)))
	}
	return t
}

func unbounded(d display) display {
	d.width = 0 // ids and reasons are there to be read whole
	return d
}

// tell says what was signed, and what was not and why.
func (r renewal) tell(done *action.SignResult, left []action.Older) error {
	if done.Total == 0 && len(left) == 0 {
		_, err := fmt.Fprintln(r.d.out, "Nothing in project and user space carries an older signature that a key you trust made.")
		return err
	}
	if len(done.Signed) > 0 {
		if _, err := fmt.Fprintf(r.d.out, "signed %s anew\n", counted(len(done.Signed), "file")); err != nil {
			return err
		}
	}
	if err := writeSigned(r.d, action.SignResult{Failed: done.Failed}); err != nil || len(left) == 0 {
		return err
	}
	if _, err := fmt.Fprintf(r.d.out, "left as they are (read each, then rye-mcp sign --type TYPE ID; --signer KEY includes what another key signed):\n"); err != nil {
		return err
	}
	return olderTable(left).write(unbounded(r.d))
}

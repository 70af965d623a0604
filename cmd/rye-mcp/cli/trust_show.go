package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/pathname"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// maxLoosened is how many changed keys one screen shows, unless all of them are
// grave.
const maxLoosened = 40

// show writes whose keys sign the items, and what the settings would loosen.
func (o *offer) show(d display) error {
	if _, err := fmt.Fprintf(d.out, "project %s: %s\n", plain.Line(o.roots.Project), plain.Line(o.standing())); err != nil {
		return err
	}
	if err := o.showItems(d); err != nil {
		return err
	}
	if err := writeLoosened(d, o.roots.Project, o.leftOut); err != nil {
		return err
	}
	if len(o.programs) > 0 {
		if _, err := fmt.Fprintf(d.out, "programs and variables of the folder, which count when you accept: %s\n", strings.Join(o.programs, ", ")); err != nil {
			return err
		}
	}
	for _, left := range o.snapshot.Left {
		if _, err := fmt.Fprintf(d.out, "no copy is made of %s: %s\n", plain.Line(left.Path), plain.Line(left.Reason)); err != nil {
			return err
		}
	}
	return nil
}

// standing says in a few words how far the settings count now.
func (o *offer) standing() string {
	switch o.known.Standing {
	case trust.Accepted:
		said := "accepted on " + o.known.Record.At.Format("2006-01-02")
		if o.known.Place != pathname.Real(o.roots.Project) {
			said += " for " + o.known.Place
		}
		if len(o.known.Record.Follow) > 0 {
			said += ", follows " + strings.Join(o.known.Record.Follow, ", ")
		}
		return said
	case trust.Home:
		return "it is your user space"
	case trust.Around:
		return "your user space lies in it, so nothing of it can be accepted"
	case trust.Stranger, trust.Nobody:
	}
	return "you have not accepted its settings"
}

// signer counts the items that one key signed.
type signer struct {
	said  string
	count int
	trust.Verdict
}

// showItems counts the items of the project by who signed them.
func (o *offer) showItems(d display) error {
	signers, total, err := o.signers()
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(d.out, "\nitems: %d\n", total); err != nil {
		return err
	}
	var t table
	for _, s := range signers {
		colour := green
		if !s.Status.Good() {
			colour = yellow
		}
		t.add(text(strconv.Itoa(s.count)), cell{s.said, colour})
	}
	return writeIndented(d, &t)
}

// writeIndented writes a table of which nothing may be cut off.
func writeIndented(d display, t *table) error {
	var b strings.Builder
	if err := t.write(display{out: &b, colors: d.colors}); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		if _, err := io.WriteString(d.out, "  "+line); err != nil {
			return err
		}
	}
	return nil
}

func (o *offer) signers() (signers []*signer, total int, err error) {
	by := map[string]*signer{}
	resolver := resolve.New(resolve.Roots{Project: o.roots.Project})
	for _, kind := range item.Kinds() {
		entries, err := resolver.Items(kind)
		if err != nil {
			return nil, 0, err
		}
		for _, e := range entries {
			found, err := resolver.Find(e.Kind, e.ID)
			if err != nil {
				continue // the error is reported where the item is used
			}
			total++
			verdict := o.keyring.Verify(trust.SubjectOf(found))
			said := o.saidOf(verdict)
			if by[said] == nil {
				by[said] = &signer{said: said, Verdict: verdict}
				signers = append(signers, by[said])
			}
			by[said].count++
		}
	}
	slices.SortStableFunc(signers, func(a, b *signer) int { return cmp.Compare(b.count, a.count) })
	return signers, total, nil
}

// saidOf says in a few words what a signature is worth.
func (o *offer) saidOf(v trust.Verdict) string {
	switch {
	case v.Status == trust.Unsigned:
		return "not signed: they do not run"
	case v.Status == trust.UntrustedKey:
		return fmt.Sprintf("signed by %s, which you do not trust: they do not run", v.Fingerprint)
	case !v.Status.Good():
		return "with a signature that does not hold: they do not run"
	}
	for _, e := range o.keyring.List() {
		if e.Fingerprint == v.Fingerprint {
			return fmt.Sprintf("signed by %s (%s)", e.Owner, e.Fingerprint)
		}
	}
	return "signed by " + v.Fingerprint
}

// writeLoosened lists what the settings of a project change once they are accepted,
// whom they would call first.
func writeLoosened(d display, project string, leftOut []config.Notice) error {
	if len(leftOut) == 0 {
		_, err := fmt.Fprint(d.out, "\nits settings loosen nothing\n")
		return err
	}
	if _, err := fmt.Fprint(d.out, "\nonce accepted, its settings change:\n"); err != nil {
		return err
	}
	shown := slices.SortedStableFunc(slices.Values(leftOut), func(a, b config.Notice) int {
		return cmp.Or(cmp.Compare(gravity(a), gravity(b)), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	var t table
	more := 0
	for i, n := range shown {
		if i >= maxLoosened && gravity(n) >= minor {
			more++
			continue
		}
		t.add(text(placeOf(project, n)), text(plain.Line(strings.Join(n.Key, "."))), text(changeOf(n)))
	}
	if err := writeIndented(d, &t); err != nil {
		return err
	}
	if more > 0 {
		_, err := fmt.Fprintf(d.out, "  and %d more; look at the files\n", more)
		return err
	}
	return nil
}

// gravity puts first what decides where keys and texts go and what runs, which is
// never left out of a screen.
func gravity(n config.Notice) int {
	provider := strings.HasPrefix(n.File, "agent/providers/")
	switch {
	case n.UserOnly:
		return minor + 1
	case provider && len(n.Key) > 0 && slices.Contains(
		[]string{"api", "base_url", "base_url_env", "api_key_env", "headers", "script", "allow_unpriced", "local"}, n.Key[0]):
		return 0
	case n.File == "agent/hooks.yaml", strings.HasPrefix(n.File, "agent/scripts/"), provider && len(n.Key) == 0:
		return 1
	case provider:
		return minor
	}
	return gravityOfLimits
}

const (
	gravityOfLimits = 2 // worse ones decide where keys and texts go, or what runs
	minor           = 3 // from here on a long list is cut
)

func placeOf(project string, n config.Notice) string {
	place := n.Path
	if rel, is := pathname.Inside(project, place); is {
		place = rel
	}
	if n.Line > 0 {
		place = fmt.Sprintf("%s:%d", place, n.Line)
	}
	return plain.Line(place)
}

// changeOf is a change in a few words.
func changeOf(n config.Notice) string {
	switch {
	case n.Fault != "":
		return "cannot be read: " + plain.Line(n.Fault)
	case len(n.Key) == 0 && n.Since:
		return "changed, or gone, since you accepted it"
	case len(n.Key) == 0:
		return "a new file"
	}
	widest := widestSetting
	if gravity(n) < gravityOfLimits {
		widest = widestGrave
	}
	said := fmt.Sprintf("%s → %s", shownSetting(n.Key, n.Holds, widest), shownSetting(n.Key, n.Says, widest))
	if n.UserOnly {
		said += " (never: read from the user space only)"
	}
	return said
}

// How many columns a value may take: one that decides where keys go or what runs is
// shown whole, so that its beginning hides nothing.
const (
	widestSetting = 200
	widestGrave   = 4000
)

// shownSetting is a value for the screen. A long one says how much of it is missing.
func shownSetting(key []string, value any, widest int) string {
	if value == nil {
		return "-"
	}
	said, err := json.Marshal(mask(key, value))
	if err != nil {
		return "?"
	}
	whole := plain.Line(string(said))
	if all := plain.Columns(whole); all > widest {
		return fmt.Sprintf("%s (%d columns more; read the file before you accept it)", plain.Shorten(whole, widest), all-widest)
	}
	return whole
}

// offerSettings tells a person, before a thread of theirs starts, that settings of
// the project do not count, and asks on a terminal whether they may. It returns
// what was told of, in the words of warnings.
func offerSettings(sys System, opts options, roots resolve.Roots, quiet bool) ([]string, error) {
	warnings := config.New(roots).Read().LeftOut()
	if quiet || len(config.Loosening(warnings)) == 0 {
		return nil, nil
	}
	o, err := newOffer(sys, roots)
	if err != nil {
		return nil, err
	}
	switch {
	case o.known.Record != nil && o.known.Record.Declined == o.snapshot.Digest():
		_, _ = fmt.Fprintln(sys.Stderr, "settings of this project do not count, as you decided; rye-mcp trust shows them")
	case !onTerminal(sys.Stdin) || !onTerminal(sys.Stderr) || belowThread(sys) || o.trustable() != nil:
		o.tell()
	default:
		err = o.ask(opts)
	}
	return config.Strings(warnings), err
}

// ask shows on a terminal what does not count, and keeps what the person decides.
func (o *offer) ask(opts options) error {
	asked := newDisplay(o.sys, opts)
	asked.out = o.sys.Stderr
	if err := writeLoosened(asked, o.roots.Project, config.Loosening(o.leftOut)); err != nil {
		return err
	}
	yes, err := confirm(o.sys, "\nAccept these settings? Without them the thread starts all the same.", "rye-mcp trust")
	if err != nil {
		return err
	}
	if yes {
		return o.accept(trust.Accept)
	}
	// A decision that cannot be kept is asked about again.
	_ = trust.Decline(o.roots, o.snapshot, o.sys.Now())
	return nil
}

// tell says in two lines that settings do not count, where nobody is asked.
func (o *offer) tell() {
	var places []string
	for _, n := range config.Loosening(o.leftOut) {
		place := placeOf(o.roots.Project, n)
		if len(n.Key) > 0 {
			place += " " + plain.Line(strings.Join(n.Key, "."))
		}
		places = append(places, place)
	}
	const most = 5
	if more := len(places) - most; more > 0 {
		places = append(places[:most], fmt.Sprintf("and %d more", more))
	}
	why, try := "you have not accepted them", acceptWith(o.sys)
	if unfit, ok := errors.AsType[*usageError](o.trustable()); ok && !belowThread(o.sys) {
		why, try = unfit.message, unfit.try
	}
	_, _ = fmt.Fprintf(o.sys.Stderr, "settings of this project do not count, as %s: %s\nTry:   %s\n", why, strings.Join(places, ", "), try)
}

// acceptWith is how settings come to count. A model, which reads it below a thread,
// is told no command.
func acceptWith(sys System) string {
	if belowThread(sys) {
		return "ask the person"
	}
	return "rye-mcp trust"
}

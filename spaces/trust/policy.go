package trust

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// Mode says what follows from a signature that is not good.
type Mode string

// The modes. Anything else is taken for Strict.
const (
	Strict Mode = "strict" // it is not used
	Warn   Mode = "warn"   // it is used, and the user is told
	Off    Mode = "off"    // nothing is looked at
)

// Settings are "integrity" in config/agent/agent.yaml. They belong to the user:
// a project that set them would decide whether it is to be trusted.
type Settings struct {
	Mode Mode `yaml:"mode"`
	// AcceptLegacy are the kinds of what is let through, with a warning, with a
	// genuine older signature, which is for no kind and id: directive, tool,
	// knowledge or settings.
	AcceptLegacy []string `yaml:"accept_legacy"`
	// AcceptLegacyDirectives lets those of them through whose signature is over the
	// XML block of a directive only.
	AcceptLegacyDirectives bool `yaml:"accept_legacy_directives"`
}

// Uses reports whether the settings let a file of a kind be used whose signature is such.
func (s Settings) Uses(kind string, status Status) bool {
	switch {
	case s.Mode == Off || s.Mode == Warn || status.Good():
		return true
	case status == BodyNotCovered:
		return s.AcceptLegacyDirectives && slices.Contains(s.AcceptLegacy, kind)
	case status == Unbound:
		return slices.Contains(s.AcceptLegacy, kind)
	default:
		return false
	}
}

// ForDevelopment is what RYE_DEV_MODE=1 makes of the settings: what would be
// refused is used with a warning.
func (s Settings) ForDevelopment() Settings {
	if s.Mode != Off {
		s.Mode = Warn
	}
	return s
}

// Checker decides whether files may be used.
type Checker struct {
	Settings Settings
	Keyring  *Keyring
}

// Decision says that a file may be used.
type Decision struct {
	Verdict Verdict // Unchecked in mode off
	Warning string  // for people, models and logs; empty when all is well
	Try     string  // what a person can do about the warning
}

// Check is the one place where it is decided whether a file may be executed,
// loaded as context, or followed. The error is a [*RefusedError].
func (c *Checker) Check(s Subject) (Decision, error) {
	if c.Settings.Mode == Off {
		return Decision{}, nil
	}
	v := c.Keyring.Verify(s)
	if v.Status.Good() {
		return Decision{Verdict: v}, nil
	}
	refused := &RefusedError{Subject: s, Verdict: v, Mend: c.Keyring.mend(s, v), Renewable: v.Status == Unbound && c.Keyring.isOwn(v.Fingerprint)}
	if refused.Broken = parseError(s); refused.Broken != nil {
		refused.Renewable, refused.Mend = false, []string{"mend the file, then rye-mcp sign " + signArgument(s)}
	}
	refused.Subject.Content = nil // an error may live long
	if !c.Settings.Uses(s.Name().Kind, v.Status) {
		return Decision{}, refused
	}
	return Decision{Verdict: v, Warning: refused.warning(), Try: refused.Try()}, nil
}

// RefusedError says that a file may not be used. It is one of
// sign.ErrUnsigned, sign.ErrBadSignature, sign.ErrUnbound,
// sign.ErrOtherItem, [ErrUntrustedKey], [ErrBodyNotCovered] and [ErrNotShipped].
type RefusedError struct {
	Subject Subject // without its content
	Verdict Verdict
	Mend    []string // commands, the likeliest first; each with what it is for
	// Renewable says that the user's own older signature is all that is wrong.
	Renewable bool
	// Broken says why the item could not be used if it were signed, nor be signed: it
	// does not parse. It is a [*parse.Error], or nil.
	Broken error
}

func (e *RefusedError) Error() string {
	if e.Broken != nil {
		return fmt.Sprintf("%s does not parse: %v; besides, %s", e.Subject, e.Broken, e.Verdict.Detail)
	}
	return fmt.Sprintf("%s is refused: %s", e.Subject, e.Verdict.Detail)
}

// Try is what a person can do, in one line.
func (e *RefusedError) Try() string { return strings.Join(e.Mend, "; or ") }

func (e *RefusedError) warning() string {
	return fmt.Sprintf("%s is used although %s; a person should look at it", e.Subject, e.Verdict.Detail)
}

func (e *RefusedError) Unwrap() error {
	switch e.Verdict.Status {
	case Unsigned:
		return sign.ErrUnsigned
	case UntrustedKey:
		return ErrUntrustedKey
	case BodyNotCovered:
		return ErrBodyNotCovered
	case Unbound:
		return sign.ErrUnbound
	case OtherItem:
		return sign.ErrOtherItem
	case NotShipped:
		return ErrNotShipped
	default:
		return sign.ErrBadSignature
	}
}

// mend lists the commands that make a file usable.
func (r *Keyring) mend(s Subject, v Verdict) []string {
	if v.Status == NotShipped {
		return []string{"install rye-mcp again"}
	}
	signing := "rye-mcp sign " + signArgument(s) + ", after reading the file"
	if r.own == nil {
		signing = "rye-mcp keys generate, then " + signing
	}
	switch v.Status {
	case UntrustedKey:
		return []string{r.trusting(v.Fingerprint) + ", if you know whose key it is", signing}
	case BodyNotCovered:
		return []string{signing, "set integrity.accept_legacy: [directive] and integrity.accept_legacy_directives in config/agent/agent.yaml of your user space"}
	case Unbound:
		return append(r.renewing(v), signing,
			"set integrity.accept_legacy: ["+s.Name().Kind+"] in config/agent/agent.yaml of your user space")
	case OtherItem:
		return []string{signing, "put the file back where it was signed"}
	case Altered:
		return []string{signing, "put back the file as it was signed"}
	default:
		return []string{signing}
	}
}

// parseError says why an item does not parse; nil when it does.
func parseError(s Subject) error {
	if s.Space == item.System {
		return nil // nobody can mend it
	}
	as := resolve.Entry{Kind: s.Kind, ID: s.ID, Path: s.Path, Ext: s.Ext, Folder: s.Folder}
	return (&resolve.Found{Entry: as, Content: s.Content}).Parse()
}

// isOwn reports whether a fingerprint is that of the user's own key.
func (r *Keyring) isOwn(fingerprint string) bool {
	return r.own != nil && r.own.Fingerprint() == fingerprint
}

// renewing is the command that signs anew what the user signed himself.
func (r *Keyring) renewing(v Verdict) []string {
	if !r.isOwn(v.Fingerprint) {
		return nil
	}
	return []string{"rye-mcp sign --renew, which lists all that you have signed before"}
}

// trusting is the command that makes a key trusted: with its document, or with
// the file that the user has to get, which does not say whose key it is.
func (r *Keyring) trusting(fingerprint string) string {
	const command = "rye-mcp keys trust "
	if e := r.untrusted(fingerprint); e != nil {
		return command + shellWord(e.Path)
	}
	return command + fingerprint + ".pem --owner NAME"
}

// signArgument is how the command is told what to sign. The kind keeps it from
// signing, or asking about, an item of another kind with the same id.
func signArgument(s Subject) string {
	if s.Kind == "" {
		return shellWord(s.Path)
	}
	if s.Detached != nil { // a file of a skill is signed with it
		return "--type " + string(item.Directive) + " " + shellWord(s.Detached.ID)
	}
	return "--type " + string(s.Kind) + " " + shellWord(s.ID)
}

// shellWord quotes what a shell would not take for one plain word. Ids and paths
// come from other people's projects, and people paste commands.
func shellWord(word string) string {
	if word != "" && strings.Trim(word, plainRunes) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

const plainRunes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-"

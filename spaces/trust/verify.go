package trust

import (
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// Subject is a file whose signature is asked for.
type Subject struct {
	Kind    item.Kind // empty for a settings file
	ID      string    // of an item; of a settings file its path below .ai/config
	Space   item.Space
	Path    string // absolute, or "system:" and the path below .ai
	Ext     string // with the dot
	Content []byte
	// Detached is the signature of a subject that does not carry it itself, and Folder
	// the one of another program that the subject is from.
	Detached *resolve.Detached
	Folder   string
	Recorded bool // see [resolve.Found.Recorded]
}

// SubjectOf is the subject that an item is.
func SubjectOf(f *resolve.Found) Subject {
	return Subject{Kind: f.Kind, ID: f.ID, Space: f.Space, Path: f.Path, Ext: f.Ext, Content: f.Content, Detached: f.Detached, Folder: f.Folder, Recorded: f.Recorded}
}

// Name is what a signature of the subject must be for.
func (s Subject) Name() sign.Name {
	if s.Detached != nil {
		return sign.Name{Kind: sign.KindForeign, ID: s.Detached.ID}
	}
	switch s.Kind {
	case "":
		return sign.Name{Kind: sign.KindSettings, ID: s.ID}
	case item.Tool:
		return sign.Name{Kind: string(s.Kind), ID: s.ID + s.Ext}
	default:
		return sign.Name{Kind: string(s.Kind), ID: s.ID}
	}
}

// NameOf is what a signature of an item, or of a settings file, is for.
func NameOf(e resolve.Entry) sign.Name { return Subject{Kind: e.Kind, ID: e.ID, Ext: e.Ext}.Name() }

// String names the subject for people.
func (s Subject) String() string {
	if s.Kind == "" {
		return fmt.Sprintf("file %s", s.Path)
	}
	return fmt.Sprintf("%s %q in the %s space", s.Kind, s.ID, s.Space)
}

// Status is what a signature is worth.
type Status string

// The statuses. Genuine and Shipped are good.
const (
	Unchecked      Status = ""
	Genuine        Status = "ok"
	Shipped        Status = "system"
	Unsigned       Status = "unsigned"
	Altered        Status = "altered"
	UntrustedKey   Status = "untrusted_key"
	OtherItem      Status = "other_item"       // genuine, and for another kind or id
	Unbound        Status = "unbound"          // an older one, for no kind and id; otherwise genuine
	BodyNotCovered Status = "body_not_covered" // an older one that is otherwise genuine
	NotShipped     Status = "not_shipped"
)

// Good reports whether the content is what a trusted key signed, or what the
// program was built with.
func (s Status) Good() bool { return s == Genuine || s == Shipped }

// Verdict is what is known about the signature of a subject.
type Verdict struct {
	Status      Status
	Detail      string // a sentence without its subject: "it …"; empty when all is well
	Fingerprint string // of the key that the line names
	Owner       string // of that key, when it is trusted
	Time        time.Time
	Provenance  string // like Time as the line says it, and not signed
}

// Verify says what the signature of a subject is worth.
func (r *Keyring) Verify(s Subject) Verdict {
	if s.Space == item.System {
		return r.verifyShipped(s)
	}
	if s.Detached != nil {
		return r.verifyDetached(s)
	}
	return r.verifyFile(s)
}

// verifyDetached says what a signature is worth that stands in a document beside the
// subject: what that of the document is, if it lists the subject's files as they are.
func (r *Keyring) verifyDetached(s Subject) Verdict {
	d := s.Detached
	document := s
	document.Content, document.Ext = d.Content, resolve.Extension
	v := r.verifyFile(document)
	_, rest := sign.Split(d.Content, resolve.Extension)
	switch why := d.Differs(rest); {
	case d.Problem != "":
		v.Status, v.Detail = Unsigned, "it cannot be signed: "+d.Problem
	case len(d.Content) == 0:
		v.Status, v.Detail = Unsigned, "it is not signed"
	case v.Status.Good() && why != "":
		v.Status, v.Detail = Altered, why
	}
	return v
}

// verifyFile says what the signature in the content of a subject is worth.
func (r *Keyring) verifyFile(s Subject) Verdict {
	sig, rest := sign.Split(s.Content, s.Ext)
	if sig == nil {
		return Verdict{Status: Unsigned, Detail: whyUnsigned(s)}
	}
	v := Verdict{Fingerprint: sig.Fingerprint, Time: sig.Time, Provenance: sig.Provenance}
	v.Status, v.Detail = coverage(s, sig, rest)
	if v.Status == Altered {
		return v
	}
	key := r.keys[sig.Fingerprint]
	if key == nil {
		why := r.whyUntrusted(sig.Fingerprint)
		if v.Detail != "" {
			why += "; " + v.Detail
		}
		v.Status, v.Detail = UntrustedKey, why
		return v
	}
	if sig.VerifyBy(key) != nil {
		v.Status, v.Detail = Altered, fmt.Sprintf("its signature is not genuine: key %s did not make it for this content", sig.Fingerprint)
		return v
	}
	v.Owner = r.owners[sig.Fingerprint]
	if v.Status == Genuine {
		v.Status, v.Detail = belonging(s, sig)
	}
	return v
}

// belonging says whether a genuine signature is for the subject.
func belonging(s Subject, sig *sign.Signature) (Status, string) {
	switch {
	case !sig.Bound():
		return Unbound, "its signature is an older one, which is for no kind and id, so the text can have been signed as something else"
	case sig.Name != s.Name():
		return OtherItem, fmt.Sprintf("its signature was made for %s and not for %s", sig.Name, s.Name())
	default:
		return Genuine, ""
	}
}

func (r *Keyring) verifyShipped(s Subject) Verdict {
	if r.shipped(systemPath(s.Path), s.Content) {
		return Verdict{Status: Shipped}
	}
	return Verdict{Status: NotShipped, Detail: "it is not the file that this program was built with"}
}

func whyUnsigned(s Subject) string {
	if sign.Resembles(s.Content, s.Ext) {
		return "it begins with a damaged signature line, or one in the comment style of another language"
	}
	return "it is not signed"
}

// coverage compares the hash of the signature with the content. The result is
// Genuine as far as that goes.
func coverage(s Subject, sig *sign.Signature, rest []byte) (Status, string) {
	switch {
	case sig.Covers(rest, s.Ext):
		return Genuine, ""
	case sig.Bound(): // always made over the whole
		return Altered, "it was changed after it was signed"
	case s.Kind == item.Directive && sig.CoversDirectiveBlock(rest):
		return BodyNotCovered, "body not covered: its signature is over the XML block only, so its instructions can have been changed"
	case s.Kind == item.Knowledge && sig.CoversBelowFrontMatter(rest):
		return Altered, "its signature is over the text below the front matter only, so its metadata can have been changed"
	default:
		return Altered, "it was changed after it was signed"
	}
}

func (r *Keyring) whyUntrusted(fingerprint string) string {
	why := fmt.Sprintf("it was signed by key %s, which is not trusted", fingerprint)
	if e := r.untrusted(fingerprint); e != nil {
		why += fmt.Sprintf(" (%s: %s)", e.Path, e.Reason)
	}
	return why
}

// untrusted finds a document about a key that does not count.
func (r *Keyring) untrusted(fingerprint string) *Entry {
	for i := range r.entries {
		if e := &r.entries[i]; e.Fingerprint == fingerprint && e.State == Untrusted {
			return e
		}
	}
	return nil
}

package action

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Older is a file that a trusted key signed with an older signature, which is for
// no kind and id.
type Older struct {
	Kind     string     `json:"type"` // a kind of item, settings or trusted_key
	ID       string     `json:"item"`
	Space    item.Space `json:"space"`
	Path     string     `json:"path"`
	Signer   string     `json:"signer"` // fingerprint
	Owner    string     `json:"owner"`  // of that key
	SignedAt time.Time  `json:"signed_at"`
	// May are the capabilities that a directive declares.
	May []string `json:"may,omitempty"`
	// Blocked says why it is to be read and signed by itself; empty when what it was
	// signed as can be told.
	Blocked string `json:"blocked,omitempty"`

	entry resolve.Entry // of an item or a settings file
	key   trust.Entry   // of a trusted key
	sig   string
}

// Older lists the items, settings files and documents of trusted keys in project
// and user space that carry older signatures. They are for a person to see who
// decides whether they are what was signed.
func (a *Actions) Older(ctx context.Context) ([]Older, error) {
	keyring, err := a.Trust.Keyring()
	if err != nil {
		return nil, err
	}
	entries, err := a.items(item.Kinds())
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e resolve.Entry) bool { return e.Space == item.System })
	var all []Older
	for _, e := range append(entries, a.settingsFiles()...) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if o, ok := olderEntry(keyring, e); ok {
			all = append(all, o)
		}
	}
	all = append(all, olderKeys(keyring)...)
	blockCopies(all)
	return all, nil
}

// olderEntry looks at one file. A file that cannot be read is no concern here.
func olderEntry(keyring *trust.Keyring, e resolve.Entry) (Older, bool) {
	src, err := readBounded(e.Path)
	if err != nil {
		return Older{}, false
	}
	subject := trust.SubjectOf(&resolve.Found{Entry: e, Content: src})
	v := keyring.Verify(subject)
	if v.Status != trust.Unbound && v.Status != trust.BodyNotCovered {
		return Older{}, false
	}
	o := Older{
		Kind: subject.Name().Kind, ID: e.ID, Space: e.Space, Path: e.Path, Signer: v.Fingerprint, Owner: v.Owner, SignedAt: v.Time, entry: e,
	}
	if sig, _ := sign.Split(src, e.Ext); sig != nil {
		o.sig = sig.Sig
	}
	if v.Status == trust.BodyNotCovered {
		o.Blocked = v.Detail
	}
	if e.Kind == item.Directive {
		if doc, err := parse.Directive(e.Path, src); err == nil {
			o.May = doc.Permissions.Capabilities
		}
	}
	return o, true
}

// olderKeys are the documents of trusted keys. Only the user vouches for a key.
func olderKeys(keyring *trust.Keyring) []Older {
	var all []Older
	for _, e := range keyring.List() {
		if !e.Older {
			continue
		}
		o := Older{Kind: sign.KindTrustedKey, ID: e.Fingerprint, Space: e.Space, Path: e.Path, Signer: e.By, Owner: e.Owner, key: e}
		if signers, err := keyring.Show(e.By); err != nil || signers[0].State != trust.Own {
			o.Blocked = "somebody else vouches for the key; rye-mcp keys trust does so in your name"
		}
		all = append(all, o)
	}
	return all
}

// blockCopies marks files that carry the same signature under different names: at
// most one of them is what was signed.
func blockCopies(all []Older) {
	first := map[string]int{}
	for i := range all {
		o := &all[i]
		at, seen := first[o.sig]
		switch other := &all[at]; {
		case o.sig == "":
		case !seen:
			first[o.sig] = i
		case o.Kind != other.Kind || o.ID != other.ID || o.entry.Ext != other.entry.Ext:
			o.Blocked = fmt.Sprintf("%s %q has the same signature", other.Kind, other.ID)
			if other.Blocked == "" {
				other.Blocked = fmt.Sprintf("%s %q has the same signature", o.Kind, o.ID)
			}
		}
	}
}

// Renew signs files anew that [Actions.Older] has listed. One that is not any
// more what was listed fails.
func (a *Actions) Renew(ctx context.Context, list []Older) (*SignResult, error) {
	key, err := a.Key()
	if err != nil {
		return nil, Fault(err)
	}
	keyring, err := a.Trust.Keyring()
	if err != nil {
		return nil, Fault(err)
	}
	result := &SignResult{Signed: []SignedItem{}, Failed: []UnsignedItem{}, Total: len(list)}
	for _, o := range list {
		if ctx.Err() != nil {
			return nil, Fault(context.Cause(ctx))
		}
		if o.Kind == sign.KindTrustedKey {
			as := resolve.Entry{ID: o.ID, Space: o.Space, Path: o.Path}
			result.note(as, trust.Renew(a.dirOf(o.Space), o.key, key, a.Now()))
			continue
		}
		result.note(o.entry, a.signFile(o.entry, key, func(src []byte) error { return o.unchanged(keyring, src) }))
	}
	result.Success = len(result.Failed) == 0
	return result, nil
}

// unchanged makes sure that a file is still what was listed.
func (o Older) unchanged(keyring *trust.Keyring, src []byte) error {
	sig, _ := sign.Split(src, o.entry.Ext)
	v := keyring.Verify(trust.SubjectOf(&resolve.Found{Entry: o.entry, Content: src}))
	if sig == nil || sig.Sig != o.sig || v.Fingerprint != o.Signer || v.Status != trust.Unbound {
		return tool.Faultf(tool.CodeIntegrity, "%s is not any more what was listed", o.Path).WithHint("List again.")
	}
	return nil
}

func (a *Actions) dirOf(space item.Space) string {
	if space == item.User {
		return a.Resolver.Roots().User
	}
	return a.Resolver.Roots().Project
}

// settingsFiles lists the YAML files below .ai/config of project and user space.
// Files that cannot be looked at are left out.
func (a *Actions) settingsFiles() []resolve.Entry {
	var entries []resolve.Entry
	for _, space := range []item.Space{item.Project, item.User} {
		dir := a.dirOf(space)
		if dir == "" || space == item.User && dir == a.dirOf(item.Project) {
			continue
		}
		config := filepath.Join(dir, ".ai", "config")
		visit := func(name string, d fs.DirEntry, err error) error {
			ext := path.Ext(name)
			if err == nil && d.Type().IsRegular() && (ext == ".yaml" || ext == ".yml") {
				entries = append(entries, resolve.Entry{
					ID: name, Space: space, Path: filepath.Join(config, filepath.FromSlash(name)), Ext: ext,
				})
			}
			return nil
		}
		_ = fs.WalkDir(os.DirFS(config), ".", visit) // the visitor returns no error
	}
	return entries
}

// readBounded reads a file of the size that items may have.
func readBounded(path string) ([]byte, error) { return regular.ReadFollowed(path, parse.MaxBytes) }

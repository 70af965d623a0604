package action

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2/maybe"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// SignResult says what was signed. Success means that nothing failed.
type SignResult struct {
	Success bool           `json:"success"`
	Total   int            `json:"total"`
	Failed  []UnsignedItem `json:"failed"`
	Signed  []SignedItem   `json:"signed"`
}

// SignedItem is an item, or a settings file, that carries a new signature.
type SignedItem struct {
	Item  string     `json:"item"`
	Type  item.Kind  `json:"type,omitempty" jsonschema:"kind of item; left out for a settings file"`
	Space item.Space `json:"space"`
	Path  string     `json:"path"`
	// May are the capabilities of an item of another program, which its file has in
	// other words.
	May []string `json:"may,omitempty" jsonschema:"what an item of another program may do"`
	// Notes say what will not work as it is written.
	Notes []string `json:"notes,omitempty" jsonschema:"what will not work as it is written"`
}

// UnsignedItem is an item that was left as it was.
type UnsignedItem struct {
	Item    string         `json:"item"`
	Type    item.Kind      `json:"type,omitempty"`
	Error   string         `json:"error"`
	Details map[string]any `json:"details,omitempty"`
}

// Sign checks and signs one item, or all that match a pattern. Items of the
// system space are refused.
func (a *Actions) Sign(ctx context.Context, c Caller, r SignRequest) (*SignResult, error) {
	result, err := a.sign(ctx, c, r)
	if err != nil {
		return nil, Fault(err)
	}
	return result, nil
}

func (a *Actions) sign(ctx context.Context, c Caller, r SignRequest) (*SignResult, error) {
	if err := checkProject(c, r.ProjectPath); err != nil {
		return nil, err
	}
	entries, err := a.toSign(c, r)
	if err != nil {
		return nil, err
	}
	key, err := a.Key()
	if err != nil {
		return nil, err
	}
	result := &SignResult{Signed: []SignedItem{}, Failed: []UnsignedItem{}, Total: len(entries)}
	for _, e := range entries {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		told, err := a.signOne(c, e, key, r.Acknowledge)
		if result.note(e, err); err == nil {
			last := &result.Signed[len(result.Signed)-1]
			last.May, last.Notes = told.May, told.Notes
		}
	}
	result.Success = len(result.Failed) == 0
	return result, nil
}

// note adds what came of signing an entry.
func (r *SignResult) note(e resolve.Entry, err error) {
	if err == nil {
		r.Signed = append(r.Signed, SignedItem{Item: e.ID, Type: e.Kind, Space: e.Space, Path: e.Path})
		return
	}
	f := Fault(err)
	r.Failed = append(r.Failed, UnsignedItem{Item: e.ID, Type: e.Kind, Error: f.Message, Details: f.Details})
}

// signOne signs the file of an entry for a caller who may, and says what is told of it.
func (a *Actions) signOne(c Caller, e resolve.Entry, key *sign.Key, accepted []string) (told SignedItem, err error) {
	if e.Kind != "" { // threads do not get to sign settings, see [Actions.filesToSign]
		if err := permit(c, capability("sign", e.Kind, e.ID)); err != nil {
			return told, err
		}
	}
	switch {
	case e.Folder != "":
		return a.signForeign(e, key, accepted)
	case len(accepted) > 0:
		return told, tool.Faultf(tool.CodeUnsupported, "%s accepts risks by itself, with <acknowledge> in its <permissions>", e.ID)
	}
	if told.Notes, err = a.examine(e); err != nil {
		return told, err
	}
	return told, a.signFile(e, key, func([]byte) error { return nil })
}

// examine refuses a tool that can never be run as it is written, and notes what else is wrong
// with a tool or a directive.
func (a *Actions) examine(e resolve.Entry) (notes []string, err error) {
	if e.Kind != item.Tool && e.Kind != item.Directive {
		return nil, nil
	}
	found, err := a.Resolver.In(e.Space).Find(e.Kind, e.ID)
	if err != nil || found.Path != e.Path {
		return nil, nil //nolint:nilerr // readers of the file say what is wrong with it
	}
	if e.Kind == item.Directive {
		doc, err := found.Directive()
		if err != nil {
			return nil, nil //nolint:nilerr // see above
		}
		return stops(doc, e.ID), nil
	}
	if a.Executor == nil {
		return nil, nil
	}
	return a.Executor.Examine(found)
}

// stops are the names in a directive for which no thread is started.
func stops(doc *item.DirectiveDoc, id string) (list []string) {
	for _, name := range doc.UnknownNames(id) {
		if name.Part != "" {
			list = append(list, fmt.Sprintf("no thread is started by it: line %d: %s", name.Line, name))
		}
	}
	return list
}

// signFile replaces the file of an entry by its signed form, when what it holds
// parses and is what the caller wants signed.
func (a *Actions) signFile(e resolve.Entry, key *sign.Key, wanted func(src []byte) error) error {
	// A linked file stays a link; what it leads to is signed.
	path, err := filepath.EvalSymlinks(e.Path)
	if err != nil {
		return err
	}
	if err := checkLink(e, path); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	src, err := regular.ReadFollowed(path, maxSigned)
	if err != nil {
		return err
	}
	if err := errors.Join(wanted(src), check(e, src)); err != nil {
		return err
	}
	signed, err := sign.Attach(src, e.Ext, trust.NameOf(e), key, a.Now())
	if err != nil {
		return err
	}
	if now, err := regular.ReadFollowed(path, maxSigned); err != nil || !bytes.Equal(now, src) {
		return errors.Join(fmt.Errorf("%s changed while it was being signed; sign it again", e.Path), err)
	}
	return maybe.WriteFile(path, signed, info.Mode().Perm())
}

// maxSigned is above what any file of an item has, in bytes.
const maxSigned = 64 << 20

// checkLink refuses an item whose file is a link to that of another item: it has
// one signature, which is for one id, so that signing the one would take the other
// its signature.
func checkLink(e resolve.Entry, real string) error {
	folder, isItem := strings.CutSuffix(e.Path, filepath.FromSlash(e.ID)+e.Ext)
	if e.Kind == "" || !isItem {
		return nil
	}
	folder, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return err
	}
	below, err := filepath.Rel(folder, real)
	if err != nil {
		return err
	}
	ext := filepath.Ext(below)
	id := filepath.ToSlash(strings.TrimSuffix(below, ext))
	another := id != e.ID && slices.Contains(e.Kind.Extensions(), ext) && item.CheckID(id) == nil
	if !another {
		return nil
	}
	return tool.Faultf(tool.CodeUnsupported, "%s is a link to %s %q, and a signature is for one id", e.Path, e.Kind, id).
		WithHint("Sign %s by that id, and put a copy where the link is.", id)
}

// check parses an item, so that only what can be executed gets signed.
func check(e resolve.Entry, src []byte) error {
	var err error
	switch e.Kind {
	case item.Directive:
		_, err = parse.Directive(e.Path, src)
	case item.Knowledge:
		_, err = parse.Knowledge(e.Path, src)
	case item.Tool:
		_, err = parse.Tool(e.Path, src)
	default:
		err = CheckSettings(e.Path, src)
	}
	return err
}

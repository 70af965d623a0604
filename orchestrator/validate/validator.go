package validate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/opening"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/palette"
)

// Validator is what items and settings of one project are validated against.
type Validator struct {
	Resolver  *resolve.Resolver
	Trust     *trust.Gate
	Config    *config.Snapshot
	Providers *provider.Registry
	// Runs says why nothing can run a tool, whatever its signature is; nil when it can
	// be run. Notes say what of its configuration nobody reads.
	Runs func(*resolve.Found) (notes []string, err error)
	// Palette is what the model of a thread is offered, see [opening.Toolbox].
	Palette func(opening.Wanted) (palette.Palette, error)
	// Env reports whether {env:NAME} is replaced.
	Env func(name string) bool
}

// Items validates items. Those without a kind are settings files. It also finds
// what is wrong with settings that every thread needs, and with all settings
// where settings is true. An error is only that of ctx.
func (v *Validator) Items(ctx context.Context, entries []resolve.Entry, settings bool) (Report, error) {
	all, shared := v.settings()
	w := v.look(shared)
	for _, e := range entries {
		w.listed[e.Path] = true
	}
	var found []Finding
	var first []Request
	for _, f := range all {
		if settings || f.Level == Error || names(entries, f.Path) {
			found = append(found, f)
		}
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return Report{}, context.Cause(ctx)
		}
		switch {
		case e.Kind != "":
			one := v.one(ctx, w, e)
			found, first = append(found, one.found...), append(first, one.first...)
		case !fails(found, e.Path):
			found = append(found, settingsFile(e)...)
		}
	}
	return report(len(entries), found, first), nil
}

// Entries lists the items of some spaces that can be reached by their id, and of
// each id all that are in the way of each other within one space. The records of
// threads are left out.
func (v *Validator) Entries(spaces ...item.Space) ([]resolve.Entry, error) {
	var entries []resolve.Entry
	for _, kind := range item.Kinds() {
		listed, err := v.Resolver.Items(kind)
		if err != nil {
			return nil, err
		}
		first := map[string]item.Space{}
		for _, e := range listed {
			if _, taken := first[e.ID]; !taken {
				first[e.ID] = e.Space
			}
			for _, space := range spaces {
				if e.Space == space && first[e.ID] == space {
					entries = append(entries, e)
				}
			}
		}
	}
	return entries, nil
}

// fails reports whether a file has an error already.
func fails(found []Finding, path string) bool {
	return slices.ContainsFunc(found, func(f Finding) bool { return f.Path == path && f.Level == Error })
}

// names reports whether a settings file is among those to validate.
func names(entries []resolve.Entry, path string) bool {
	return slices.ContainsFunc(entries, func(e resolve.Entry) bool { return e.Kind == "" && e.Path == path })
}

// one validates one item.
func (v *Validator) one(ctx context.Context, w *world, e resolve.Entry) *list {
	l := &list{about: Finding{Type: e.Kind, Item: e.ID, Space: e.Space, Path: e.Path}}
	found, err := v.load(e)
	if err != nil {
		l.errorf(CodeUnreadable, 0, "", "%v", err)
		return l
	}
	if found.Path != e.Path {
		l.warnf(CodeShadowed, 0, "remove one of them", "it is never used: %s has the same id and comes first", found.Path)
		return l
	}
	v.signature(l, 0, trust.SubjectOf(found))
	switch e.Kind {
	case item.Directive:
		err = validateDirective(ctx, l, w, found)
	case item.Tool:
		err = validateTool(l, w, found)
	case item.Knowledge:
		err = validateKnowledge(l, w, found)
	}
	if wrong, ok := errors.AsType[*parse.Error](err); ok {
		l.found = slices.DeleteFunc(l.found, func(f Finding) bool { // the check of the signature reads the file, too
			return f.Code == CodeSignature && strings.Contains(f.Message, wrong.Reason)
		})
		l.errorf(CodeParse, wrong.Line, "", "%s", wrong.Reason)
	} else if err != nil {
		l.errorf(CodeParse, 0, "", "%v", err)
	}
	return l
}

// load reads an item from its own space, where one of another space shadows it.
func (v *Validator) load(e resolve.Entry) (*resolve.Found, error) {
	var alone resolve.Roots
	switch roots := v.Resolver.Roots(); e.Space {
	case item.Project:
		alone.Project = roots.Project
	case item.User:
		alone.User = roots.User
	case item.System:
		alone.System = roots.System
	}
	return resolve.New(alone).Find(e.Kind, e.ID)
}

// signature tells that an item will not be used as it is.
func (v *Validator) signature(l *list, line int, subject trust.Subject) {
	decision, err := v.Trust.Check(subject)
	switch refused, ok := errors.AsType[*trust.RefusedError](err); {
	case ok:
		l.warnf(CodeSignature, line, refused.Try(), "%s", refused.Error())
	case err != nil:
		l.warnf(CodeSignature, line, "rye-mcp doctor", "%s cannot be checked: %v", subject, err)
	case decision.Warning != "":
		l.warnf(CodeSignature, line, decision.Try, "%s", decision.Warning)
	}
}

// missing tells what a reference to an item leads to, when that is nothing.
func missing(err error) (message, try string) {
	if none, ok := errors.AsType[*resolve.NotFoundError](err); ok {
		return err.Error(), meant(none.Nearest...)
	}
	return err.Error(), ""
}

// meant proposes what somebody may have meant.
func meant(ids ...string) string {
	if len(ids) == 0 || ids[0] == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %s?", ids[0])
}

package search

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// scope restricts a search to a kind of item and to ids.
type scope struct {
	kind item.Kind // empty: every kind
	// globs are alternatives for the id with "." for "/", in the pattern language
	// of SQLite's GLOB; none allow every id.
	globs []string
	// threads: the records of threads are in it.
	threads bool
}

// ScopeError says where a text is no scope.
type ScopeError struct {
	Scope  string
	Pos    int    // in bytes from 0
	Reason string // what is wrong and what is valid
}

func (e *ScopeError) Error() string {
	return fmt.Sprintf("scope %q, at position %d: %s", item.Shown(e.Scope), e.Pos, e.Reason)
}

// The prefixes of a scope that is written as a capability.
const (
	capabilityPrefix = "rye.search."
	fetchPrefix      = "rye.fetch."
)

// maxScopeBytes bounds a scope: more than the longest id takes.
const maxScopeBytes = 1024

const validScopes = "valid are a kind (directive, tool, knowledge), a kind and ids (tool.rye.core.*), " +
	"the capability form (rye.search.tool.rye.core.*), or * for everything"

// parseScope reads a scope. "/" and "." are the same; "*" stands for any run of
// characters and "?" for one. An id without either stands for itself and for
// what is below it.
func parseScope(text string) (scope, error) {
	fail := func(pos int, reason string) (scope, error) {
		return scope{}, &ScopeError{Scope: text, Pos: pos, Reason: reason + "; " + validScopes}
	}
	if text == "" || text == "*" {
		return scope{}, nil
	}
	if len(text) > maxScopeBytes {
		return fail(maxScopeBytes, "longer than any id")
	}
	dotted := strings.ReplaceAll(text, "/", ".")
	rest, isCapability := strings.CutPrefix(dotted, capabilityPrefix)
	if !isCapability { // finding and reading are one permission
		rest, isCapability = strings.CutPrefix(dotted, fetchPrefix)
	}
	if strings.HasPrefix(dotted, "rye.") && !isCapability {
		return fail(len("rye."), "a capability that is not about searching")
	}
	pos := len(dotted) - len(rest)
	if rest == "*" {
		return scope{}, nil
	}
	kind, ids, hasIDs := strings.Cut(rest, ".")
	if !slices.Contains(item.Kinds(), item.Kind(kind)) {
		return fail(pos, fmt.Sprintf("no item type %q", item.Shown(kind)))
	}
	s := scope{kind: item.Kind(kind)}
	if !hasIDs || ids == "*" {
		return s, nil
	}
	pos += len(kind) + 1
	if bad := strings.IndexFunc(ids, notInID); bad >= 0 {
		return fail(pos+bad, "a character no item id has")
	}
	if ids == "" || strings.HasPrefix(ids, ".") || strings.HasSuffix(ids, ".") || strings.Contains(ids, "..") {
		return fail(pos, "an id with an empty part")
	}
	id := strings.ReplaceAll(ids, ".", "/")
	s.threads = s.kind == item.Knowledge && id == item.ThreadRecords || item.IsThreadRecord(s.kind, id)
	glob := escapeGlob(ids)
	s.globs = []string{glob}
	if !strings.ContainsAny(ids, "*?") {
		s.globs = append(s.globs, glob+".*")
	}
	return s, nil
}

// notInID reports characters that item ids and patterns of them do not have.
func notInID(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }

// escapeGlob keeps "[" from opening a character class: in a scope it is a
// character like any other.
func escapeGlob(pattern string) string { return strings.ReplaceAll(pattern, "[", "[[]") }

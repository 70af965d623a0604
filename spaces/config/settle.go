package config

import (
	"maps"
	"reflect"
	"slices"
)

// settling decides what of a project's files counts, key by key.
type settling struct {
	rules *rule
	// own are the layers of system and user space, accepted those of the copy that
	// the user has accepted, present those of the files as they are. The values of
	// the last two lose what does not count.
	own, accepted, present []layer
	followed               bool // a key that the user follows signed the present files
	file, path             string
	notices                []Notice
}

// settle leaves in the layers of the project what counts. A key counts as the
// present file has it where that is no looser than what holds without it: what the
// user has accepted, else what user and system space say.
func (s *settling) settle() {
	own := mergedOf(s.own)
	s.walk(own, mergedOf(s.accepted, own), s.rules, nil, s.narrow)
	holds := mergedOf(s.accepted, own)
	s.walk(holds, mergedOf(s.present, own), s.rules, nil, s.decide)
}

// walk visits the keys in which two sets of settings differ.
func (s *settling) walk(holds, says any, r *rule, at []string, visit func(r *rule, holds, says any, at []string)) {
	a, aIsMap := holds.(map[string]any)
	b, bIsMap := says.(map[string]any)
	if !aIsMap && !bIsMap || !r.isMap() {
		if !same(holds, says) {
			visit(r, holds, says, at)
		}
		return
	}
	keys := slices.Sorted(maps.Keys(a))
	for key := range b {
		if _, both := a[key]; !both {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		s.walk(a[key], b[key], r.below(key), below(at, key), visit)
	}
}

// narrow takes out of the accepted copy what no project decides, accepted or not.
func (s *settling) narrow(r *rule, holds, says any, at []string) {
	if r != nil && r.UserOnly && !r.allows(holds, says) {
		removeFrom(s.accepted, at)
	}
}

// decide takes out of the present files what is looser than what holds, or out of
// the copy what the present files have given up.
func (s *settling) decide(r *rule, holds, says any, at []string) {
	if r.allows(holds, says) || s.followed && r != nil && !r.UserOnly && r.Follow != mayNever {
		if !slices.ContainsFunc(s.present, func(l layer) bool { return l.gives(at) }) {
			removeFrom(s.accepted, at)
		}
		return
	}
	s.leaveOut(r, holds, says, at)
}

// usersAlone takes out of files that count as a whole what is the user's alone to say.
func (s *settling) usersAlone() {
	own := mergedOf(s.own)
	s.walk(own, mergedOf(s.present, own), s.rules, nil, func(r *rule, holds, says any, at []string) {
		if r != nil && r.UserOnly && !r.allows(holds, says) {
			s.leaveOut(r, holds, says, at)
		}
	})
}

// leaveOut takes a value out of the present files, and says so.
func (s *settling) leaveOut(r *rule, holds, says any, at []string) {
	n := Notice{Path: s.path, File: s.file, Key: at, Holds: holds, Says: says, UserOnly: r != nil && r.UserOnly}
	for _, l := range s.present {
		if l.gives(at) {
			n.Path, n.File, n.Line = l.path, l.file, l.writtenAt(at)
		}
	}
	removeFrom(s.present, at)
	s.notices = append(s.notices, n)
}

// mergedOf are layers on top of settings, which stay as they are.
func mergedOf(layers []layer, base ...map[string]any) map[string]any {
	merged := map[string]any{}
	for _, b := range base {
		merge(merged, b)
	}
	for _, l := range layers {
		merge(merged, l.values)
	}
	return merged
}

// removeFrom deletes a value from every layer, and the maps that become empty.
func removeFrom(layers []layer, at []string) {
	for _, l := range layers {
		remove(l.values, at)
	}
}

func remove(values map[string]any, at []string) {
	if len(at) == 1 {
		delete(values, at[0])
		return
	}
	inner, ok := values[at[0]].(map[string]any)
	if !ok {
		return
	}
	remove(inner, at[1:])
	if len(inner) == 0 {
		delete(values, at[0])
	}
}

// same reports whether two values are the same; a number may be written as a whole
// one or not.
func same(a, b any) bool {
	return reflect.DeepEqual(numbered(a), numbered(b))
}

func numbered(v any) any {
	if n, whole := v.(int); whole {
		return float64(n)
	}
	return v
}

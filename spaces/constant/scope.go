package constant

import (
	"fmt"
	"maps"
	"slices"
)

// unknown is the error of an expression whose value is not known.
type unknown struct{ reason string }

func (e *unknown) Error() string { return e.reason }

func unknownf(format string, args ...any) error { return &unknown{fmt.Sprintf(format, args...)} }

// The events that make a name unknown; their line follows.
const (
	changed = "is changed"
	inBlock = "is bound or changed in a block"
)

// value is a folded expression.
type value struct {
	v      any
	depth  int // of brackets within
	weight int // elements and bytes of text within
	// shares are the names whose lists or mappings are part of it.
	shares []string
}

// scope is what is bound so far.
type scope struct {
	table  Table
	values map[string]value
	left   int // of maxWeight
}

func newScope() *scope {
	return &scope{table: Table{}, values: map[string]value{}, left: maxWeight}
}

// spend accounts for a part of a value.
func (s *scope) spend(weight int) error {
	if s.left -= weight; s.left < 0 {
		s.left = 0
		return unknownf("is too large, together with the constants before it")
	}
	return nil
}

// bind gives a name its value, or the reason why there is none.
func (s *scope) bind(to string, line int, v value, err error) {
	if err != nil {
		s.forget(to, line, err.Error())
		return
	}
	s.table[to] = Constant{Value: v.v, Line: line}
	// A change of what it shares is one of all that share it, in both directions.
	for _, other := range v.shares {
		o := s.values[other]
		o.shares = append(o.shares, to)
		s.values[other] = o
	}
	// The names that shared the value before still share it with the others.
	v.shares = append(s.values[to].shares, v.shares...)
	s.values[to] = v
}

// forget makes the value of a name unknown.
func (s *scope) forget(to string, line int, reason string) {
	s.table[to] = Constant{Line: line, Reason: reason}
}

// forgetAll makes all values unknown.
func (s *scope) forgetAll(line int, reason string) {
	for n := range s.values {
		s.forget(n, line, reason)
	}
	clear(s.values)
}

// change makes the values of names unknown that are bound already, and all that
// share a part with them. Names of values to come are only marked where the
// statement may bind them.
func (s *scope) change(names []string, line int, how string) {
	reason := fmt.Sprintf("%s on line %d", how, line)
	seen := map[string]bool{}
	for len(names) > 0 {
		n := names[len(names)-1]
		names = names[:len(names)-1]
		if seen[n] {
			continue
		}
		seen[n] = true
		s.forget(n, line, reason)
		names = append(names, s.values[n].shares...)
		delete(s.values, n) // with all that it shares; else each change would follow them again
	}
}

// maxReason is the length in bytes from which a reason that goes back to another
// name is told without one more name before it.
const maxReason = 200

// look returns the value of a name, counted as a part of another.
func (s *scope) look(n string) (value, error) {
	c, known := s.table[n]
	switch {
	case !known:
		return value{}, unknownf("uses %s, which no line before it binds", n)
	case len(c.Reason) > maxReason:
		return value{}, unknownf("%s", c.Reason)
	case c.Reason != "":
		return value{}, unknownf("uses %s, which %s", n, c.Reason)
	}
	v := s.values[n]
	if err := s.spend(v.weight); err != nil {
		return value{}, err
	}
	switch v.v.(type) {
	case []any, map[string]any:
		v.shares = []string{n}
	default:
		v.shares = nil
	}
	return v, nil
}

// contain makes a list or mapping of its parts.
func (s *scope) contain(v any, parts []value) (value, error) {
	out := value{v: v, depth: 1, weight: 1}
	shares := map[string]bool{}
	for _, p := range parts {
		out.depth = max(out.depth, p.depth+1)
		out.weight += p.weight
		for _, n := range p.shares {
			shares[n] = true
		}
	}
	out.shares = slices.Collect(maps.Keys(shares))
	if out.depth > maxDepth {
		return value{}, errTooDeep
	}
	return out, s.spend(1)
}

package config

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// direction is what a project that nobody has accepted may do with a key: the
// keyword x-untrusted of its schema.
type direction string

// The directions. A value that lies in none of the others' ways is never taken.
const (
	mayLower  direction = "lower"  // a number, a truth value, or a word of a list whose strictest comes first
	mayRaise  direction = "higher" // the same the other way round
	mayChange direction = "free"
	mayNever  direction = "never"
)

// rule is what a schema says about who may set a key. It is read beside the schema
// library, which knows nothing of it.
type rule struct {
	Ref        string           `json:"$ref"`
	Defs       map[string]*rule `json:"$defs"`
	Properties map[string]*rule `json:"properties"`
	Others     json.RawMessage  `json:"additionalProperties"`
	Type       string           `json:"type"`
	Enum       []any            `json:"enum"`
	Untrusted  direction        `json:"x-untrusted"`
	// UserOnly: not even a project that its user has accepted may do more.
	UserOnly bool `json:"x-user-only"`
	// Follow is never for what a followed key does not decide either.
	Follow direction `json:"x-follow"`
	// Zero is the least that 0 can stand for, where it means as many as the machine
	// bears.
	Zero *float64 `json:"x-zero"`

	others *rule
}

// rulesOf reads the rules of a file of schema/.
func rulesOf(name string) (*rule, error) {
	text, err := schemaFiles.ReadFile("schema/" + name)
	if err != nil {
		return nil, err
	}
	var root rule
	if err := json.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	for _, shared := range root.Defs {
		shared.link(root.Defs)
	}
	root.link(root.Defs)
	return &root, nil
}

// link hands the rules that others refer to on to every part of a rule.
func (r *rule) link(shared map[string]*rule) {
	r.Defs = shared
	if len(r.Others) > 0 && r.Others[0] == '{' {
		r.others = &rule{}
		_ = json.Unmarshal(r.Others, r.others) // it was read once as part of the whole
		r.others.link(shared)
	}
	for _, inner := range r.Properties {
		inner.link(shared)
	}
}

// resolved is the rule with what it refers to. Its own words come first.
func (r *rule) resolved() *rule {
	name, refers := strings.CutPrefix(r.Ref, "#/$defs/")
	if !refers || r.Defs[name] == nil {
		return r
	}
	to := *r.Defs[name]
	to.inherit(r)
	return &to
}

// inherit takes what is said about a whole for a part of it.
func (r *rule) inherit(whole *rule) {
	if whole.Untrusted != "" {
		r.Untrusted = whole.Untrusted
	}
	if whole.Follow != "" {
		r.Follow = whole.Follow
	}
	r.UserOnly = r.UserOnly || whole.UserOnly
}

// below is the rule for a key; nil when the schema does not know it.
func (r *rule) below(key string) *rule {
	inner := r.Properties[key]
	if inner == nil {
		inner = r.others
	}
	if inner == nil {
		return nil
	}
	part := *inner.resolved()
	part.inherit(r)
	return &part
}

// at is the rule for a key of a key; nil when the schema does not know it.
func (r *rule) at(path []string) *rule {
	for _, key := range path {
		if r == nil {
			return nil
		}
		r = r.below(key)
	}
	return r
}

// isMap reports whether a rule is about a map, whose keys have rules of their own.
func (r *rule) isMap() bool { return r != nil && (len(r.Properties) > 0 || r.others != nil) }

// allows reports whether a project that nobody has accepted may put a value in
// place of the one that holds; nil stands for none.
func (r *rule) allows(holds, says any) bool {
	if same(holds, says) {
		return true
	}
	if r == nil {
		return false
	}
	switch r.Untrusted {
	case mayChange:
		return true
	case mayLower, mayRaise:
	default: // never, or nothing
		return false
	}
	from, known := r.rank(holds, true)
	to, comparable := r.rank(says, false)
	if !known || !comparable {
		return false
	}
	if r.Untrusted == mayLower {
		return to <= from
	}
	return to >= from
}

// rank puts the values of a key in an order.
func (r *rule) rank(value any, holds bool) (float64, bool) {
	if i := slices.Index(r.Enum, value); i >= 0 {
		return float64(i), true
	}
	switch v := value.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case int:
		return r.number(float64(v), holds), len(r.Enum) == 0
	case float64:
		return r.number(v, holds), len(r.Enum) == 0
	}
	return 0, false
}

func (r *rule) number(v float64, holds bool) float64 {
	switch {
	case v != 0 || r.Zero == nil:
		return v
	case holds:
		return *r.Zero
	default:
		return math.Inf(1)
	}
}

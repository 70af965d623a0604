package config

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/expr"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// The categories of failed model calls: all there are. The outcome of a thread
// that ends with one has the code provider_<category>, but for CategoryContext
// (context_full).
const (
	CategoryRateLimited = "rate_limited" // later, as the provider says
	CategoryTransient   = "transient"    // soon
	CategoryPermanent   = "permanent"    // asking again cannot help
	CategoryAuth        = "auth"         // the key is missing, wrong, or may not do this
	CategoryQuota       = "quota"        // the account has no money left
	CategoryContext     = "context"      // the conversation does not fit the model
	CategoryRefusal     = "refusal"      // the model, or a filter of its provider, declines
	CategoryEmpty       = "empty"        // an answer that says nothing
	CategoryUsage       = "usage"        // the provider reports tokens that the call cannot have used
	CategoryCancelled   = "cancelled"    // somebody stopped the call
)

// Values of [RetryPolicy.Type].
const (
	PolicyExponential = "exponential" // min(base * 2^attempt, max), attempt from 0
	PolicyFixed       = "fixed"       // delay
	PolicyUseHeader   = "use_header"  // what the answer's header asks for, else fallback
	PolicyNone        = "none"        // no second call
)

// ErrorRules are config/agent/error_classification.yaml of all spaces: what kind
// of trouble a failed call of a model is, and what follows from it.
type ErrorRules struct {
	Patterns []ErrorPattern `yaml:"patterns"` // the first that matches decides
	Default  ErrorClass     `yaml:"default"`  // when none does
}

// ErrorPattern is a rule.
type ErrorPattern struct {
	ID         string         `yaml:"id"`
	Name       string         `yaml:"name"` // for people; may be empty
	Match      expr.Condition `yaml:"-"`
	ErrorClass `yaml:",inline"`
}

// ErrorClass is what a rule says about a failure.
type ErrorClass struct {
	Category  string       `yaml:"category"` // one of [Categories]
	Retryable bool         `yaml:"retryable"`
	Policy    *RetryPolicy `yaml:"retry_policy"` // nil: resilience.yaml's
}

// RetryPolicy says when a call is repeated. Times are in seconds.
type RetryPolicy struct {
	Type     string       `yaml:"type"`
	Base     float64      `yaml:"base"`     // of PolicyExponential
	Max      float64      `yaml:"max"`      // of PolicyExponential
	Delay    float64      `yaml:"delay"`    // of PolicyFixed
	Header   string       `yaml:"header"`   // of PolicyUseHeader
	Fallback *RetryPolicy `yaml:"fallback"` // of PolicyUseHeader; nil: resilience.yaml's
}

// Classify finds the rule for a failure. data are what conditions look at.
func (r ErrorRules) Classify(data map[string]any) ErrorPattern {
	for _, p := range r.Patterns {
		if p.Match.Eval(data) {
			return p
		}
	}
	return ErrorPattern{ID: "default", ErrorClass: r.Default}
}

// ErrorRules reads error_classification.yaml. Unlike other lists, the patterns of
// one space do not replace those of another: the project's are tried first, then
// the user's, then the shipped ones, so that a file needs to hold no more than
// what it adds. A pattern takes the place of one with the same id in a lower
// space. The default is the uppermost file's that has one.
func (sn *Snapshot) ErrorRules() (ErrorRules, []string, error) { return sn.errorRules() }

func (sn *Snapshot) readErrorRules() (ErrorRules, []string, error) {
	s, err := sn.load(errorKind)
	if err != nil {
		return ErrorRules{}, s.warnings, err
	}
	return valuesOf(sn, errorKind, s, s.errorRules)
}

// errorRules puts the rules of all files together.
func (s settings) errorRules() (ErrorRules, []string, error) {
	rules, taken, hasDefault := ErrorRules{}, map[string]bool{}, false
	for _, layer := range slices.Backward(s.layers) {
		own, warnings, err := layer.errorRules()
		s.warnings = append(s.warnings, warnings...)
		if err != nil {
			return ErrorRules{}, s.warnings, err
		}
		for _, p := range own.Patterns {
			if !taken[p.ID] {
				rules.Patterns = append(rules.Patterns, p)
			}
		}
		for _, p := range own.Patterns {
			taken[p.ID] = true
		}
		if !hasDefault && own.Default.Category != "" {
			rules.Default, hasDefault = own.Default, true
		}
	}
	return rules, s.warnings, nil
}

// errorRules are the rules of one file.
func (l layer) errorRules() (rules ErrorRules, warnings []string, err error) {
	if err := nodeOf(l.values).Decode(&rules); err != nil {
		return rules, nil, l.errorAt(nil, "%s", item.ShownIn(err.Error()))
	}
	ids := map[string]bool{}
	for i := range rules.Patterns {
		p, at := &rules.Patterns[i], []string{"patterns", strconv.Itoa(i)}
		if ids[p.ID] {
			return rules, warnings, l.errorAt(below(at, "id"), "%q is the id of an earlier pattern too", item.Shown(p.ID))
		}
		ids[p.ID] = true
		if p.Match, err = expr.ParseCondition(l.valueAt(below(at, "match"))); err != nil {
			return rules, warnings, l.conditionError(below(at, "match"), err)
		}
		warnings = append(warnings, l.finish(p.Policy, below(at, "retry_policy"))...)
	}
	warnings = append(warnings, l.finish(rules.Default.Policy, []string{"default", "retry_policy"})...)
	return rules, warnings, nil
}

// conditionError gives an error of a condition its line.
func (l layer) conditionError(at []string, err error) error {
	var fault *expr.Error
	if !errors.As(err, &fault) {
		return l.errorAt(at, "%v", err)
	}
	for key := range strings.FieldsFuncSeq(fault.Place, func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
		at = below(at, key)
	}
	return l.errorAt(at, "%s", fault.Reason)
}

// The values that a policy may leave out, as the original system had them.
const (
	defaultBase  = 2
	defaultMax   = 120
	defaultDelay = 60
	retryAfter   = "retry-after"
)

// policyKeys are the keys of each type of policy.
var policyKeys = map[string][]string{
	PolicyExponential: {"base", "max"},
	PolicyFixed:       {"delay"},
	PolicyUseHeader:   {"fallback", "header"},
	PolicyNone:        nil,
}

// finish fills in what a policy leaves out, and warns of keys that its type has
// no use for.
func (l layer) finish(p *RetryPolicy, at []string) []string {
	if p == nil {
		return nil
	}
	var warnings []string
	for _, key := range []string{"base", "delay", "fallback", "header", "max"} {
		given := l.valueAt(below(at, key)) != nil
		if given && !slices.Contains(policyKeys[p.Type], key) {
			warnings = append(warnings, l.warning(below(at, key), "the policy "+p.Type+" has no use for it"))
		}
		if given {
			continue
		}
		switch key {
		case "base":
			p.Base = defaultBase
		case "max":
			p.Max = defaultMax
		case "delay":
			p.Delay = defaultDelay
		case "header":
			p.Header = retryAfter
		}
	}
	return append(warnings, l.finish(p.Fallback, below(at, "fallback"))...)
}

// valueAt is the value at a path of keys, nil when there is none.
func (l layer) valueAt(at []string) any {
	var value any = l.values
	for _, key := range at {
		switch inner := value.(type) {
		case map[string]any:
			value = inner[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(inner) {
				return nil
			}
			value = inner[i]
		default:
			return nil
		}
	}
	return value
}

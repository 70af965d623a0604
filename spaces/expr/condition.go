package expr

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Condition is true or false of data. The zero value is true of all data.
type Condition struct {
	node node // nil: always true
}

// Always reports whether the condition was left out: it is true of all data.
func (c Condition) Always() bool { return c.node == nil }

// Eval reports whether the condition is true of data.
func (c Condition) Eval(data any) bool { return c.node == nil || c.node.eval(data) }

// And is true when both conditions are.
func (c Condition) And(other Condition) Condition {
	switch {
	case c.node == nil:
		return other
	case other.node == nil:
		return c
	}
	return Condition{node: all{c.node, other.node}}
}

// Why names the part that makes the condition false of data, with what is there
// instead. It is empty when the condition is true.
func (c Condition) Why(data any) string {
	if c.Eval(data) {
		return ""
	}
	return c.node.why(data)
}

// String is the condition in the short form, empty when it is always true.
func (c Condition) String() string {
	if c.node == nil {
		return ""
	}
	return c.node.String()
}

// node is a part of a condition.
type node interface {
	eval(data any) bool
	why(data any) string // of a node that is false
	fmt.Stringer
}

// all is true when every part is.
type all []node

func (a all) eval(data any) bool {
	for _, part := range a {
		if !part.eval(data) {
			return false
		}
	}
	return true
}

func (a all) why(data any) string {
	for _, part := range a {
		if !part.eval(data) {
			return part.why(data)
		}
	}
	return ""
}

func (a all) String() string { return "(" + join(a, " and ") + ")" }

// anyOf is true when one part is.
type anyOf []node

func (a anyOf) eval(data any) bool {
	for _, part := range a {
		if part.eval(data) {
			return true
		}
	}
	return false
}

func (a anyOf) why(data any) string {
	reasons := make([]string, len(a))
	for i, part := range a {
		reasons[i] = part.why(data)
	}
	return strings.Join(reasons, ", and ")
}

func (a anyOf) String() string { return "(" + join(a, " or ") + ")" }

func join(parts []node, by string) string {
	texts := make([]string, len(parts))
	for i, part := range parts {
		texts[i] = part.String()
	}
	return strings.Join(texts, by)
}

// negation is true when its part is not.
type negation struct{ of node }

func (n negation) eval(data any) bool { return !n.of.eval(data) }
func (n negation) why(any) string     { return n.of.String() + " is true" }
func (n negation) String() string     { return "not " + n.of.String() }

// The operators.
const (
	opEq       = "eq"
	opNe       = "ne"
	opGt       = "gt"
	opGte      = "gte"
	opLt       = "lt"
	opLte      = "lte"
	opIn       = "in"
	opContains = "contains"
	opRegex    = "regex"
	opExists   = "exists"
)

// Ops lists the operators of conditions.
func Ops() []string {
	return []string{opEq, opNe, opGt, opGte, opLt, opLte, opIn, opContains, opRegex, opExists}
}

// test compares the data at a path.
type test struct {
	path  path
	op    string
	right operand
	re    *regexp.Regexp // of opRegex
}

// operand is what data are compared with: a value, or other data times factor.
type operand struct {
	value  any
	path   path    // nil: value
	factor float64 // 0: none
}

func (o operand) in(data any) (any, bool) {
	if o.path == nil {
		return o.value, true
	}
	found, ok := o.path.in(data)
	if !ok || o.factor == 0 {
		return found, ok
	}
	n, ok := number(found)
	return n * o.factor, ok
}

func (o operand) String() string {
	switch {
	case o.path == nil:
		return literal(o.value)
	case o.factor != 0:
		return o.path.String() + " * " + strconv.FormatFloat(o.factor, 'f', -1, 64)
	}
	return o.path.String()
}

func (t test) eval(data any) bool {
	left, found := t.path.in(data)
	if t.op == opExists {
		return (found && left != nil) == (t.right.value != false)
	}
	right, given := t.right.in(data)
	if !found || !given {
		return false
	}
	switch t.op {
	case opEq:
		return equal(left, right)
	case opNe:
		return sameType(left, right) && !equal(left, right)
	case opIn:
		return holds(right, left)
	case opContains:
		return holds(left, right)
	case opRegex:
		text, ok := left.(string)
		return ok && t.re.MatchString(text)
	}
	order, ok := compare(left, right)
	return ok && inOrder(t.op, order)
}

// inOrder reports whether op wants two values that compare as order.
func inOrder(op string, order int) bool {
	switch op {
	case opGt:
		return order > 0
	case opGte:
		return order >= 0
	case opLt:
		return order < 0
	default:
		return order <= 0
	}
}

func (t test) why(data any) string {
	is := "is not there"
	if left, found := t.path.in(data); found {
		is = "is " + clip(literal(left))
	}
	return fmt.Sprintf("%s is false: %s %s", t, t.path, is) + t.whyRight(data)
}

// whyRight names the data on the right, which are not seen in the condition.
func (t test) whyRight(data any) string {
	if t.right.path == nil {
		return ""
	}
	right, found := t.right.in(data)
	if !found {
		return fmt.Sprintf(", %s is not there or no number", t.right)
	}
	return fmt.Sprintf(", %s is %s", t.right, clip(literal(right)))
}

func (t test) String() string {
	if t.op == opExists {
		if t.right.value == false {
			return "not " + t.path.String() + " exists"
		}
		return t.path.String() + " exists"
	}
	return t.path.String() + " " + symbol(t.op) + " " + t.right.String()
}

// symbol is how the short form writes an operator.
func symbol(op string) string {
	for written, named := range symbols {
		if named == op {
			return written
		}
	}
	return op
}

// literal writes a value the way the short form has it.
func literal(v any) string {
	if s, ok := v.(string); ok {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
	}
	if v == nil {
		return "null"
	}
	return item.Text(v)
}

// maxShown bounds what Why shows of data, in bytes.
const maxShown = 80

func clip(s string) string {
	return item.Clip(s, maxShown)
}

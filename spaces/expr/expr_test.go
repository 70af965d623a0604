package expr_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/rye-mcp/rye-mcp/spaces/expr"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// data are what the tables look at.
func data() map[string]any {
	return map[string]any{
		"directive": "deploy/api",
		"cost":      map[string]any{"turns": int64(3), "spend": 0.85, "huge": int64(1<<53 + 1)},
		"limits":    map[string]any{"spend": int64(1), "turns": int64(3)},
		"error":     map[string]any{"code": "rate_limited", "retryable": true},
		"items":     []any{map[string]any{"id": "a"}, "b", int64(3), []any{"deep"}},
		"parent":    nil,
		"empty":     "",
		"user-name": "ada",
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	tests := []struct {
		path  string
		want  any
		found bool
	}{
		{"directive", "deploy/api", true},
		{"cost.turns", int64(3), true},
		{"items.0.id", "a", true},
		{"items[0].id", "a", true},
		{"items[3][0]", "deep", true},
		{"items.2", int64(3), true},
		{"user-name", "ada", true},
		{"parent", nil, true},
		{"parent.id", nil, false},
		{"items.4", nil, false},
		{"items.-1", nil, false},
		{"items.id", nil, false},
		{"cost.none", nil, false},
		{"directive.x", nil, false},
		{"", nil, false},
		{"cost.", nil, false},
		{".cost", nil, false},
		{"items[", nil, false},
		{"items[0", nil, false},
		{"items[x]", nil, false},
		{"0", nil, false},
		{"a b", nil, false},
	}
	for _, tt := range tests {
		got, found := expr.Lookup(data(), tt.path)
		if found != tt.found || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("Lookup(%q) = %v, %t; want %v, %t", tt.path, got, found, tt.want, tt.found)
		}
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	type cost struct {
		Turns int     `json:"turns"`
		Spend float64 `json:"spend"`
	}
	got, err := expr.Plain(map[string]any{"cost": cost{Turns: 3, Spend: 0.5}, "list": []string{"a"}})
	want := map[string]any{"cost": map[string]any{"turns": int64(3), "spend": 0.5}, "list": []any{"a"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if _, err := expr.Plain(func() {}); err == nil {
		t.Error("a function became data")
	}
}

// TestEval has each condition as YAML and, where there is one, in the short form.
func TestEval(t *testing.T) {
	t.Parallel()
	tests := []struct {
		yaml, when string
		want       bool
	}{
		{`{path: cost.turns, op: eq, value: 3}`, `cost.turns == 3`, true},
		{`{path: cost.turns, op: eq, value: 3.0}`, `cost.turns eq 3.0`, true},
		{`{path: cost.turns, op: eq, value: "3"}`, `cost.turns == "3"`, false},
		{`{path: cost.turns, op: ne, value: "3"}`, `cost.turns != '3'`, false},
		{`{not: {path: cost.turns, op: eq, value: "3"}}`, `not cost.turns == "3"`, true},
		{`{path: cost.turns, op: ne, value: 4}`, `cost.turns != 4`, true},
		{`{path: cost.none, op: ne, value: 4}`, `cost.none != 4`, false},
		{`{path: cost.huge, op: eq, value: 9007199254740992}`, `cost.huge == 9007199254740992`, false},
		{`{path: cost.spend, op: gt, value: 0.8}`, `cost.spend > 0.8`, true},
		{`{path: cost.spend, op: gt, value: 0.85}`, `cost.spend > .85`, false},
		{`{path: cost.spend, op: gte, value: 0.85}`, `cost.spend >= 0.85`, true},
		{`{path: cost.spend, op: lt, value: 1}`, `cost.spend < 1`, true},
		{`{path: cost.turns, op: lte, value: 2.9}`, `cost.turns <= 2.9`, false},
		{`{path: cost.turns, op: gt, value: -1}`, `cost.turns > -1`, true},
		{`{path: directive, op: gt, value: 1}`, `directive > 1`, false},
		{`{path: directive, op: lt, value: e}`, `directive < "e"`, true},
		{`{path: error.retryable, op: eq, value: true}`, `error.retryable == true`, true},
		{`{path: error.retryable, op: eq, value: "true"}`, `error.retryable == "true"`, false},
		{`{path: error.code, op: in, value: [rate_limited, overloaded]}`, `error.code in ["rate_limited", 'overloaded']`, true},
		{`{path: error.code, op: in, value: [overloaded]}`, `error.code in ["overloaded"]`, false},
		{`{path: cost.turns, op: in, value: [1, 3.0]}`, `cost.turns in [1,3.0]`, true},
		{`{path: error.code, op: in, value: "rate_limited, other"}`, `error.code in "rate_limited, other"`, true},
		{`{path: directive, op: contains, value: api}`, `directive contains "api"`, true},
		{`{path: directive, op: contains, value: 1}`, `directive contains 1`, false},
		{`{path: items, op: contains, value: b}`, `items contains "b"`, true},
		{`{path: items, op: contains, value: c}`, `items contains "c"`, false},
		{`{path: items, op: contains, value: {id: a}}`, ``, true},
		{`{path: cost, op: contains, value: turns}`, `cost contains "turns"`, true},
		{`{path: directive, op: regex, value: "^deploy/\\w+$"}`, `directive regex "^deploy/\w+$"`, true},
		{`{path: directive, op: regex, value: "ploy"}`, `directive regex 'ploy'`, true},
		{`{path: cost.turns, op: regex, value: "3"}`, `cost.turns regex "3"`, false},
		{`{path: cost, op: exists}`, `cost exists`, true},
		{`{path: none, op: exists}`, `none exists`, false},
		{`{path: parent, op: exists}`, `parent exists`, false},
		{`{path: empty, op: exists}`, `empty exists`, true},
		{`{path: none, op: exists, value: false}`, `not none exists`, true},
		{`{any: [{path: none, op: exists}, {path: cost, op: exists}]}`, `none exists or cost exists`, true},
		{`{all: [{path: none, op: exists}, {path: cost, op: exists}]}`, `none exists and cost exists`, false},
		{`{all: [{path: cost, op: exists}, {not: {path: none, op: exists}}]}`, `cost exists && !none exists`, true},
		{``, `none exists || cost exists && empty exists`, true},
		{``, `(none exists || cost exists) and not (empty exists and cost exists)`, false},
		{``, `cost.spend > limits.spend * 0.8`, true},
		{``, `cost.spend > limits.spend * 0.9`, false},
		{``, `cost.turns > limits.turns`, false},
		{``, `cost.turns == limits.turns`, true},
		{``, `cost.turns == limits.none`, false},
		{``, `cost.spend > directive * 2`, false},
		{``, `items[0].id == "a" and items.1=="b"`, true},
		{``, `parent == null`, true},
		{``, `directive == "de\"ploy"`, false},
	}
	for _, tt := range tests {
		if tt.yaml != "" {
			c, err := expr.ParseCondition(fromYAML(t, tt.yaml))
			checkEval(t, tt.yaml, c, err, tt.want)
		}
		if tt.when != "" {
			c, err := expr.ParseWhen(tt.when)
			checkEval(t, tt.when, c, err, tt.want)
			again, err := expr.ParseWhen(c.String())
			checkEval(t, tt.when+" → "+c.String(), again, err, tt.want)
		}
	}
}

func checkEval(t *testing.T, name string, c expr.Condition, err error, want bool) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if got := c.Eval(data()); got != want {
		t.Errorf("%s is %t, want %t", name, got, want)
	}
	if why := c.Why(data()); (why == "") != want {
		t.Errorf("%s is %t because %q", name, want, why)
	}
}

func fromYAML(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestNoConditionIsTrue(t *testing.T) {
	t.Parallel()
	for name, parse := range map[string]func() (expr.Condition, error){
		"zero": func() (expr.Condition, error) { return expr.Condition{}, nil },
		"yaml": func() (expr.Condition, error) { return expr.ParseCondition(nil) },
		"xml":  func() (expr.Condition, error) { return expr.FromXML(nil) },
	} {
		c, err := parse()
		if err != nil || !c.Always() || !c.Eval(nil) || c.String() != "" || c.Why(nil) != "" {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}

func TestWhy(t *testing.T) {
	t.Parallel()
	tests := []struct{ when, want string }{
		{`cost exists and cost.turns >= 5 and none exists`, `cost.turns >= 5 is false: cost.turns is 3`},
		{`none == "x"`, `none == "x" is false: none is not there`},
		{`cost.turns > 9 or parent exists`, `cost.turns > 9 is false: cost.turns is 3, and parent exists is false: parent is null`},
		{`not (cost.turns == 3 or none exists)`, `(cost.turns == 3 or none exists) is true`},
		{`cost.spend > limits.spend * 0.9`, `cost.spend > limits.spend * 0.9 is false: cost.spend is 0.85, limits.spend * 0.9 is 0.9`},
		{`cost.spend > limits.none`, `cost.spend > limits.none is false: cost.spend is 0.85, limits.none is not there or no number`},
	}
	for _, tt := range tests {
		c, err := expr.ParseWhen(tt.when)
		if got := c.Why(data()); err != nil || got != tt.want {
			t.Errorf("%s: %v\n got %s\nwant %s", tt.when, err, got, tt.want)
		}
	}
}

func TestFromXML(t *testing.T) {
	t.Parallel()
	turns := item.Condition{Path: "cost.turns", Op: "gte", Value: int64(3)}
	tests := []struct {
		name       string
		conditions []item.Condition
		want       bool
	}{
		{"one", []item.Condition{turns}, true},
		{"all hold", []item.Condition{turns, {Path: "cost", Op: "exists"}}, true},
		{"one does not", []item.Condition{turns, {Path: "none", Op: "exists"}}, false},
		{"list as text", []item.Condition{{Path: "cost.turns", Op: "in", Value: "[1, 3]"}}, true},
		{"text", []item.Condition{{Path: "error.code", Op: "in", Value: "rate_limited"}}, true},
		{"bracket in other ops", []item.Condition{{Path: "error.code", Op: "regex", Value: "[rst]ate"}}, true},
	}
	for _, tt := range tests {
		c, err := expr.FromXML(tt.conditions)
		checkEval(t, tt.name, c, err, tt.want)
	}
	_, err := expr.FromXML([]item.Condition{turns, {Path: "a", Op: "in", Value: "[1"}})
	wantPlace(t, "broken list", err, "condition 2", "array")
	_, err = expr.FromXML([]item.Condition{turns, {Path: "a", Op: "eq"}})
	wantPlace(t, "no value", err, "condition 2.value", "missing")
}

func TestConditionErrors(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("{not: ", 70) + "{path: a, op: exists}" + strings.Repeat("}", 70)
	tests := []struct{ yaml, place, reason string }{
		{`text`, "", "want a condition"},
		{`[]`, "", "want a condition"},
		{`{}`, "path", "missing"},
		{`{path: a}`, "op", "missing"},
		{`{path: 3, op: exists}`, "path", "missing"},
		{`{path: "a b", op: exists}`, "path", "no path"},
		{`{path: a, op: equals, value: 1}`, "op", "unknown"},
		{`{path: a, op: equals}`, "op", "unknown"},
		{`{path: a, op: eq}`, "value", "missing"},
		{`{path: a, op: gt, value: true}`, "value", "number"},
		{`{path: a, op: in, value: 3}`, "value", "list"},
		{`{path: a, op: regex, value: "("}`, "value", "missing closing"},
		{`{path: a, op: regex, value: "(?=a)"}`, "value", "invalid"},
		{`{path: a, op: regex, value: 3}`, "value", "text"},
		{`{path: a, op: exists, value: 3}`, "value", "true, false"},
		{`{path: a, op: exists, vlaue: 3}`, "vlaue", "unknown key"},
		{`{any: []}`, "any", "list"},
		{`{all: {path: a, op: exists}}`, "all", "list"},
		{`{any: [{path: a, op: exists}, {path: b, op: huh, value: 1}]}`, "any[1].op", "unknown"},
		{`{not: {all: [{path: a, op: exists}, 7]}}`, "not.all[1]", "want a condition"},
		{`{any: [{path: a, op: exists}], path: b}`, "", "stands alone"},
		{deep, strings.TrimSuffix(strings.Repeat("not.", 65), "."), "nested"},
	}
	for _, tt := range tests {
		_, err := expr.ParseCondition(fromYAML(t, tt.yaml))
		wantPlace(t, tt.yaml, err, tt.place, tt.reason)
	}
}

func wantPlace(t *testing.T, name string, err error, place, reason string) {
	t.Helper()
	var e *expr.Error
	if !errors.As(err, &e) || e.Place != place || !strings.Contains(e.Reason, reason) {
		t.Errorf("%s: got %v; want %q about %q", name, err, place, reason)
	}
}

func TestWhenErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ when, place, reason string }{
		{``, "character 1", "before the end"},
		{`a`, "character 2", "want an operator"},
		{`a = 3`, "character 3", "no meaning"},
		{`a == `, "character 6", "want a value"},
		{`a == b c`, "character 8", "not expected"},
		{`a is 3`, "character 3", `before "is"`},
		{`a "==" 3`, "character 3", "want an operator"},
		{`3 > a`, "character 1", "want the path"},
		{`a > 3 and`, "character 10", "path"},
		{`(a > 3`, "character 7", "want )"},
		{`a > 3)`, "character 6", "not expected"},
		{`a == "x`, "character 6", "no end"},
		{`a regex "("`, "character 9", "missing closing"},
		{`a regex b`, "character 9", "as text"},
		{`a > true`, "character 5", "number"},
		{`a > b * c`, "character 9", "want a number"},
		{`a > b * 0`, "character 9", "other than 0"},
		{`a in [1 2]`, "character 9", "want , or ]"},
		{`a in [b]`, "character 7", "want a value"},
		{`a in [1`, "character 8", "want , or ]"},
		{`a > 1 ; rm`, "character 7", "no meaning"},
		{strings.Repeat("(", 70) + "a exists", "character 66", "nested"},
		{strings.Repeat("!", 70) + "a exists", "character 66", "nested"},
	}
	for _, tt := range tests {
		_, err := expr.ParseWhen(tt.when)
		wantPlace(t, tt.when, err, tt.place, tt.reason)
	}
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	vars := map[string]any{
		"name": "ada", "n": int64(3), "ok": true, "nil": nil, "empty": "",
		"list": []any{"<a>", int64(1)}, "inputs": map[string]any{"apiKey": "k", "trap": "${name} {input:x}"},
		"snake_case": "s",
	}
	tests := []struct {
		text    string
		want    any
		missing []string
	}{
		{"plain", "plain", nil},
		{"", "", nil},
		{"${name}", "ada", nil},
		{"${ n }", int64(3), nil},
		{"${ok}", true, nil},
		{"${list}", []any{"<a>", int64(1)}, nil},
		{"${nil}", nil, nil},
		{"is ${nil}.", "is .", nil},
		{"${name}/${n}/${list}", `ada/3/["<a>",1]`, nil},
		{"${inputs.apiKey}", "k", nil},
		{"${list[0]}${list.1}", "<a>1", nil},
		{"${none || nil || name}", "ada", nil},
		{"${nil||none}", nil, nil},
		{"${empty || name}", "", nil},
		{"${none}", "", []string{"none"}},
		{"a ${none || inputs.other} b ${name}${x}", "a  b ada", []string{"none || inputs.other", "x"}},
		{"${snake_case}", "s", nil},
		{"${inputs.trap}!", "${name} {input:x}!", nil},
		{"${HOME} ${Home} ${x:-y} ${_x} $name {name} ${} ${a..b} ${1}", "${HOME} ${Home} ${x:-y} ${_x} $name {name} ${} ${a..b} ${1}", nil},
		{"${name", "${name", nil},
		{"${A ${name}", "${A ada", nil},
		{"$${name}}", "$ada}", nil},
	}
	for _, tt := range tests {
		got, missing := expr.ParseTemplate(tt.text).Expand(vars)
		if !reflect.DeepEqual(got, tt.want) || !reflect.DeepEqual(missing, tt.missing) {
			t.Errorf("%q became %#v, missing %q; want %#v, %q", tt.text, got, missing, tt.want, tt.missing)
		}
	}
}

// TestHostileTemplates: what a project's files say costs no more than they are
// long, and puts in no more than fits.
func TestHostileTemplates(t *testing.T) {
	t.Parallel()
	begun := strings.Repeat("${a ", 1<<19) + "}" // hours, when each beginning looks for its end
	if got, missing := expr.ExpandText(begun, nil); got != strings.TrimSuffix(begun, "${a }") || len(missing) != 1 {
		t.Errorf("%d bytes, missing %q", len(got), missing)
	}
	const size = 1 << 20
	data := map[string]any{"text": strings.Repeat("x", size), "list": []any{strings.Repeat("y", size)}}
	text, missing := expr.ExpandText(strings.Repeat("${text}", 50_000), data)
	if len(text) > 16*size || len(text) < 10*size || len(missing) < 49_000 {
		t.Errorf("%d bytes, %d missing", len(text), len(missing))
	}
	data["map"] = map[string]any{"key": strings.Repeat("z", size)}
	data["keys"] = map[string]any{strings.Repeat("k", size): 1}
	for _, name := range []string{"list", "map", "keys"} {
		params := make([]any, 5_000)
		for i := range params {
			params[i] = "${" + name + "}"
		}
		if got, missing := expr.ExpandAll(params, data); len(item.Text(got)) > 17*size || len(missing) < 4_900 {
			t.Errorf("%s: %d missing", name, len(missing))
		}
	}
}

func TestExpandAll(t *testing.T) {
	t.Parallel()
	params := map[string]any{
		"${name}": "${n}",
		"list":    []any{"${none}", true, map[string]any{"deep": "v${n}"}},
		"other":   "${gone}",
	}
	got, missing := expr.ExpandAll(params, map[string]any{"name": "x", "n": int64(3)})
	want := map[string]any{"${name}": int64(3), "list": []any{"", true, map[string]any{"deep": "v3"}}, "other": ""}
	if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(missing, []string{"none", "gone"}) {
		t.Errorf("got %v, missing %q", got, missing)
	}
	if params["other"] != "${gone}" {
		t.Error("the params themselves were changed")
	}
	if text, _ := expr.ExpandText("${n}", map[string]any{"n": int64(3)}); text != "3" {
		t.Errorf("text %q", text)
	}
	if text, _ := expr.ExpandText("${n}", map[string]any{"n": nil}); text != "" {
		t.Errorf("text of null %q", text)
	}
}

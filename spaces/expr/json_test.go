package expr_test

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/expr"
)

// A condition that was written as JSON and read again is the same one.
func TestConditionAsJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		_, c := valid(t)
		data, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var again expr.Condition
		if err := json.Unmarshal(data, &again); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if again.String() != c.String() {
			t.Fatalf("%s was read as %s", c, again)
		}
		with := values(3).Draw(t, "data")
		if c.Eval(with) != again.Eval(with) || c.Why(with) != again.Why(with) {
			t.Fatalf("%s and %s of %v", c, again, with)
		}
	})
	var always expr.Condition
	data, err := json.Marshal(always)
	if err != nil || string(data) != "null" || json.Unmarshal(data, &always) != nil || !always.Always() {
		t.Errorf("%s, %v", data, err)
	}
	short, err := expr.ParseWhen("a > b * 2")
	if err != nil {
		t.Fatal(err)
	}
	if data, err := json.Marshal(short); err == nil {
		t.Errorf("%s was written as %s", short, data)
	}
}

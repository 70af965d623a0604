package limit

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// TestCheckOverrides: what passes is never more than what held before or, at a
// root, than the person's settings let a call give; and lowering always passes.
func TestCheckOverrides(t *testing.T) {
	t.Parallel()
	set := func(t *rapid.T, label string) item.LimitSet {
		s := item.LimitSet{}
		for _, name := range item.LimitNames() {
			s[name] = float64(rapid.IntRange(0, 5).Draw(t, label+" "+name))
		}
		return s
	}
	rapid.Check(t, func(t *rapid.T) {
		base, overrides := set(t, "base"), set(t, "override")
		var most item.LimitSet
		if rapid.Bool().Draw(t, "root") {
			most = set(t, "most")
		}
		err := CheckOverrides(overrides, base, most)
		for name, value := range overrides {
			valid := max(base[name], most[name])
			if err == nil && value > valid {
				t.Fatalf("%s = %v passes, over %v and %v", name, value, base[name], most[name])
			}
			if got := Valid(base, most)[name]; got != valid {
				t.Fatalf("%s: valid is %v, want %v", name, got, valid)
			}
		}
		var over *OverrideError
		if err != nil && (!errors.As(err, &over) || over.Value <= over.Most || overrides[over.Name] != over.Value || over.Below != (most == nil)) {
			t.Fatalf("%v", err)
		}
		if err := CheckOverrides(base, base, most); err != nil {
			t.Fatalf("what holds already: %v", err)
		}
	})
}

package limit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// OverrideError says that a call asks for more than it may give a thread.
type OverrideError struct {
	Name  string
	Value float64
	Most  float64 // valid
	Below bool    // a thread starts the other one
}

func (e *OverrideError) Error() string {
	if e.Below {
		return fmt.Sprintf("limit %s = %s: below a thread limits can only be lowered; at most %s is valid", e.Name, plain(e.Value), plain(e.Most))
	}
	return fmt.Sprintf("limit %s = %s: a call may give at most %s", e.Name, plain(e.Value), plain(e.Most))
}

// CheckOverrides refuses overrides that raise a limit, with an *[OverrideError].
// Base holds without them. For a root, most is what the person's own
// settings let a call raise it to; below a thread it is nil.
func CheckOverrides(overrides, base, most item.LimitSet) error {
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		if valid := max(base[name], most[name]); overrides[name] > valid {
			return &OverrideError{Name: name, Value: overrides[name], Most: valid, Below: most == nil}
		}
	}
	return nil
}

// Valid is what a call may give each limit: what holds without it, or more where
// the person's settings let it.
func Valid(base, most item.LimitSet) item.LimitSet {
	valid := maps.Clone(base)
	for name, value := range most {
		valid[name] = max(valid[name], value)
	}
	return valid
}

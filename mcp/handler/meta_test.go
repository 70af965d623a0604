package handler

import (
	"maps"
	"slices"
	"testing"
)

// Two tools are there from the first request on; the others are found by words of
// their own, which cost no context.
func TestMeta(t *testing.T) {
	t.Parallel()
	var loaded []string
	for _, tool := range connect(t, nil).Tools() {
		hint, hinted := tool.Meta[keySearchHint].(string)
		if tool.Meta[keyAlwaysLoad] == true {
			loaded = append(loaded, tool.Name)
		} else if len(hint) > 100 {
			t.Errorf("%s: a hint of %d bytes", tool.Name, len(hint))
		}
		if tool.Meta[keyAlwaysLoad] == true && hinted {
			t.Errorf("%s is always loaded and has a hint to be found", tool.Name)
		}
		for _, key := range slices.Collect(maps.Keys(tool.Meta)) {
			if !slices.Contains([]string{keyAlwaysLoad, keySearchHint, keyMaxResult}, key) {
				t.Errorf("%s has the key %s", tool.Name, key)
			}
		}
	}
	slices.Sort(loaded)
	if !slices.Equal(loaded, []string{"rye_execute", "wait_threads"}) {
		t.Errorf("%q are always loaded", loaded)
	}
}

package inputs_test

import (
	"reflect"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/inputs"
)

func TestUses(t *testing.T) {
	t.Parallel()
	got := inputs.Uses("{input:a} {input:b?} {input:c:x}{input:d|} {env:HOME} {output:e} {input:} {secret:f}")
	want := []inputs.Use{
		{Text: "{input:a}", Input: "a", Stays: true}, {Text: "{input:b?}", Input: "b"}, {Text: "{input:c:x}", Input: "c"},
		{Text: "{input:d|}", Input: "d"}, {Text: "{env:HOME}", Env: "HOME", Stays: true},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	for _, use := range got { // a use that is said to stay does, and no other
		if filled := inputs.Interpolate(use.Text, nil, nil); (filled == use.Text) != use.Stays {
			t.Errorf("%+v became %q", use, filled)
		}
	}
}

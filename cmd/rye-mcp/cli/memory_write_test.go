package cli

import (
	"bytes"
	"strings"
	"testing"
)

// TestMemoryAdd: an entry that stands is shown instead of dropped in silence, one that is nearly
// the same is named, and keys may be shortened.
func TestMemoryAdd(t *testing.T) {
	t.Parallel()
	p := remembering(t, "enabled: true\nembedding: {base_url: 'http://127.0.0.1:1/v1'}\n")
	sys := testSystem(p.path, map[string]string{"USER_SPACE": p.state.finder.User})
	var out, warned bytes.Buffer
	sys.Stdout, sys.Stderr = &out, &warned
	add := func(args ...string) (said, warnings string) {
		t.Helper()
		out.Reset()
		warned.Reset()
		root := newRoot(sys)
		root.SetArgs(append([]string{"memory", "add", "--kind", "constraint", "Clock"}, args...))
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		return out.String(), warned.String()
	}
	said, _ := add("The server clock offset is -5 hours")
	first := strings.TrimSpace(strings.TrimPrefix(said, "noted as "))
	want := "stands already: " + first + "\n\nClock\nThe server clock offset is -5 hours\n\nif yours says something else: --supersedes " + first + "\n"
	if said, _ := add("the server clock offset is -5 hours."); said != want {
		t.Errorf("%s\nwant\n%s", said, want)
	}
	said, warnings := add("The server clock offset is 5 hours")
	second := strings.TrimSpace(strings.TrimPrefix(said, "noted as "))
	if second == first || !strings.HasPrefix(said, "noted as ") || !strings.Contains(warnings, first+" says nearly the same") || !strings.Contains(warnings, "--supersedes "+first) {
		t.Errorf("%s%s", said, warnings)
	}
	if said, _ = add("The server clock offset is 5 hours", "--supersedes", first[:6]); !strings.HasPrefix(said, "stands already: "+second+", in the place of "+first+"\n") {
		t.Error(said)
	}
	if said, _ = add("There is no offset", "--supersedes", second[:6]); !strings.HasSuffix(said, ", in the place of "+second+"\n") {
		t.Error(said)
	}
}

func TestTellDamagedCounts(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "", 1: "1 entry is not signed by your state key for this project and is never", 2: "2 entries are not signed by your state key for this project and are never"} {
		var warned bytes.Buffer
		if err := tellDamaged(System{Stderr: &warned}, n); err != nil || !strings.Contains(warned.String(), want) || (n == 0) != (warned.Len() == 0) {
			t.Errorf("%d: %q, %v", n, warned.String(), err)
		}
	}
}

package workspace

import (
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestIgnored: what a thread writes where git ignores it is named wherever its changes are, and
// files of that kind are not removed with the workspace. Folders that are ignored as a whole
// keep none.
func TestIgnored(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		writes  map[string]string
		ignored string
		stays   bool
	}{
		"a file":              {writes: map[string]string{"findings.log": "all\n"}, ignored: "findings.log", stays: true},
		"a file in a folder":  {writes: map[string]string{"logs/deep/a.log": "all\n"}, ignored: "logs/deep/a.log", stays: true},
		"a folder":            {writes: map[string]string{"node_modules/x/index.js": "x\n"}, ignored: "node_modules/"},
		"both, and a change":  {writes: map[string]string{"a.log": "all\n", "a": "y\n", "out/b": "y\n"}, ignored: "a.log out/", stays: true},
		"state and no change": {writes: map[string]string{".ai/state/x.log": "x\n"}},
		"tracked":             {writes: map[string]string{"kept.log": "y\n"}},
		"nothing":             {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.base(map[string]string{"a": "x\n", "kept.log": "x\n", ".gitignore": "*.log\nnode_modules/\nout\n"})
			w := thread.Workspace{Type: thread.WorkspaceWorktree, Name: thread.NewWorkspaceName(), Of: "d/t-1"}
			w, work, leave, err := h.Enter(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			puts(t, work.Root, c.writes)
			leave()
			want := strings.Fields(c.ignored)
			changes, err := h.Changes(t.Context(), w)
			if err != nil || !slices.Equal(changes.Ignored, want) || (changes.IgnoredWarning() != "") != (len(want) > 0) {
				t.Errorf("changes %+v, %v, want ignored %q", changes, err, want)
			}
			diff, err := h.Diff(t.Context(), w, DiffRequest{})
			if err != nil || !slices.Equal(diff.Ignored, want) {
				t.Errorf("diff %+v, %v, want ignored %q", diff, err, want)
			}
			applied := h.apply(w, ApplyRequest{})
			if applied.Removed == (c.stays || changes.Count() == 0) {
				t.Errorf("%+v, to stay: %v", applied, c.stays)
			}
			if gone, err := h.Tidy(t.Context(), w); gone == c.stays || err != nil {
				t.Errorf("tidied %v, %v, to stay: %v", gone, err, c.stays)
			}
			if c.stays {
				for path, text := range c.writes {
					if now := has(t, work.Root); now[path] != text && !strings.HasPrefix(path, "out/") {
						t.Errorf("%s is lost: %q", path, now)
					}
				}
			}
		})
	}
}

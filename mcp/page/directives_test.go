package page

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// A directive without a good signature can be started where the user's settings let it,
// and the page says nothing else.
func TestUnsignedDirectives(t *testing.T) {
	t.Parallel()
	for mode, refused := range map[trust.Mode]bool{trust.Strict: true, trust.Warn: false, trust.Off: false, "other": true} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			d, s, _ := newBusy(t)
			s.Project.Actions.Trust.Settings = func() (trust.Settings, error) { return trust.Settings{Mode: mode}, nil }
			w := d.ask(http.MethodGet, "/ui/api/directives", "", bearer(d.Token(false)))
			var told struct{ Directives []Directive }
			if err := json.Unmarshal(w.Body.Bytes(), &told); err != nil || w.Code != http.StatusOK {
				t.Fatalf("%d %v: %s", w.Code, err, w.Body)
			}
			problems := map[string]string{}
			for _, one := range told.Directives {
				if one.Space == item.Project {
					problems[one.ID] = one.Problem
				}
			}
			if len(problems) != 2 || (problems["review/greet"] != "") != refused || problems["broken"] == "" {
				t.Errorf("problems %q", problems)
			}
		})
	}
}

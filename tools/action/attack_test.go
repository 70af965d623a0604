package action

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/parse"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// TestAttackDirectiveSignedAsKnowledge: a thread that may write files and sign knowledge has a directive's text signed as knowledge, and moves the file to the directives.
// It is not executed there, not even under the same id, because the signature is for knowledge.
func TestAttackDirectiveSignedAsKnowledge(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.trust.Mode = trust.Strict
	h.makeKey()
	thread := h.holder("rye.sign.knowledge.team.deploy")
	h.put(h.project, "knowledge/team/deploy.md", helloDirective)
	if r := h.sign(thread, "knowledge", "team/deploy"); !r.Success {
		t.Fatalf("got %+v", r)
	}
	got, err := h.Sign(t.Context(), thread, SignRequest{ItemType: "directive", ItemID: "test/hello"})
	wantFault(t, got, err, tool.CodePermissionDenied, "rye.sign.directive.test.hello")

	signed := h.item(h.project, "knowledge/team/deploy.md")
	for _, id := range []string{"team/deploy", "team/other", "Team/Deploy"} {
		h.put(h.project, "directives/"+id+".md", signed)
		got, err := h.Execute(t.Context(), h.client(), ExecuteRequest{ItemType: "directive", ItemID: id})
		details := wantFault(t, got, err, tool.CodeIntegrity, `its signature was made for knowledge "team/deploy"`)
		if details["signature"] != trust.OtherItem {
			t.Errorf("%s: details %v", id, details)
		}
	}
	if r := h.sign(h.client(), "directive", "team/deploy"); !r.Success {
		t.Errorf("the user cannot sign it as a directive: %+v", r)
	}
}

// A file that does not parse is not mended by signing it, and says where it is
// wrong.
func TestRefusalOfWhatDoesNotParse(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.trust.Mode = trust.Strict
	h.makeKey()
	h.put(h.project, "directives/test/bad.md", "# Bad\n\n```xml\n<directive name=\"bad\">\n<metadata>\n</directive>\n```\n")
	h.put(h.project, "knowledge/test/bad.md", "```yaml\nname: [\n```\n")
	h.put(h.project, "tools/test/bad.yaml", "a: 1\nb: [\n")
	for _, kind := range []string{"directive", "knowledge", "tool"} {
		got, err := h.Execute(t.Context(), h.client(), ExecuteRequest{ItemType: kind, ItemID: "test/bad"})
		details := wantFault(t, got, err, tool.CodeInvalidItem, "does not parse: "+filepath.Join(h.project, ".ai"))
		path, _ := details["path"].(string)
		if _, lined := details["line"].(int); !lined || !strings.HasPrefix(path, h.project) || details["mend"] != nil {
			t.Errorf("%s: details %v", kind, details)
		}
		refused, ok := errors.AsType[*trust.RefusedError](err)
		if !ok {
			t.Fatalf("%s: %v", kind, err)
		}
		if _, ok := errors.AsType[*parse.Error](refused.Broken); !ok || !strings.HasPrefix(refused.Try(), "mend the file, then rye-mcp sign --type "+kind+" test/bad") {
			t.Errorf("%s: %v, mended by %q", kind, refused.Broken, refused.Try())
		}
	}
	if _, err := os.Stat(filepath.Join(h.project, ".ai/state")); err == nil {
		t.Error("something ran")
	}
}

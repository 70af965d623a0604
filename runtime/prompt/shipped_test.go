package prompt

import (
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/system"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// Every thread of a base pays for its context in every call, so it is short:
// 1 000 tokens, estimated as four bytes each.
func TestShippedBasesAreShort(t *testing.T) {
	t.Parallel()
	const most = 4000
	roots := resolve.Roots{System: system.FS()}
	composer := Composer{Resolver: resolve.New(roots), Trust: &trust.Gate{Roots: roots, Shipped: system.Has}}
	data, err := Facts{Directive: "a/b", ProjectPath: "/home/ada/project", Capabilities: []string{"rye.fetch.*"}}.Data()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"rye/agent/core/base", "rye/agent/core/base_execute_only", "rye/agent/core/base_review"} {
		found, err := composer.Resolver.Find(item.Directive, id)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := found.Directive()
		if err != nil {
			t.Fatal(err)
		}
		c, err := composer.Compose(found, doc.Extends)
		if err != nil {
			t.Fatal(err)
		}
		_, injected, warnings := c.Inject(data)
		size := 0
		for _, i := range injected {
			size += i.Bytes
		}
		if size == 0 || size > most || len(warnings) > 0 {
			t.Errorf("%s puts %d bytes in front of every thread, at most %d are meant; %v", id, size, most, warnings)
		}
		t.Logf("%s: %d bytes", id, size)
	}
}

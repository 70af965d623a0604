package prompt

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// directiveText is a directive with attributes and metadata.
func directiveText(name, extends, metadata string) string {
	if extends != "" {
		extends = fmt.Sprintf(" extends=%q", extends)
	}
	return fmt.Sprintf("# D\n\n```xml\n<directive name=%q version=\"1.0.0\"%s>\n<metadata>\n<description>D</description>\n"+
		"<model tier=\"fast\"/>\n%s</metadata>\n</directive>\n```\n\nWork.\n", filepath.Base(name), extends, metadata)
}

// contextXML is <context> with ids by position: "system a, before b".
func contextXML(entries string) string {
	if entries == "" {
		return ""
	}
	var b strings.Builder
	for entry := range strings.SplitSeq(entries, ", ") {
		position, id, _ := strings.Cut(entry, " ")
		fmt.Fprintf(&b, "<%s>%s</%s>", position, id, position)
	}
	return "<context>" + b.String() + "</context>\n"
}

// shelf is a system space made in memory.
type shelf fstest.MapFS

func (s shelf) directive(id, extends, metadata string) {
	s["directives/"+id+".md"] = &fstest.MapFile{Data: []byte(directiveText(id, extends, metadata))}
}

func (s shelf) knowledge(id, body string) {
	s["knowledge/"+id+".md"] = &fstest.MapFile{Data: []byte("```yaml\nname: " + filepath.Base(id) + "\n```\n\n" + body + "\n")}
}

func (s shelf) composer() Composer {
	roots := resolve.Roots{System: fstest.MapFS(s)}
	return Composer{Resolver: resolve.New(roots), Trust: &trust.Gate{
		Roots: roots, Shipped: func(string, []byte) bool { return true },
		Settings: func() (trust.Settings, error) { return trust.Settings{Mode: trust.Strict}, nil },
	}}
}

// compose composes a directive with what it extends itself.
func compose(t testing.TB, c Composer, id string) (*Composition, error) {
	t.Helper()
	leaf, err := c.Resolver.Find(item.Directive, id)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := leaf.Directive()
	if err != nil {
		t.Fatal(err)
	}
	return c.Compose(leaf, doc.Extends)
}

// contextOf writes context as contextXML reads it, and who asks for it.
func contextOf(c *Composition) string {
	var all []string
	for _, ref := range c.Context {
		all = append(all, fmt.Sprintf("%s %s of %s", ref.Position, ref.ID, ref.Directive))
	}
	return strings.Join(all, ", ")
}

func TestCompose(t *testing.T) {
	t.Parallel()
	s := shelf{}
	for _, id := range []string{"k/who", "k/rules", "k/list"} {
		s.knowledge(id, "About "+id)
	}
	const files, fetch = "<permissions><execute><tool>rye.file-system.*</tool></execute></permissions>\n", "<permissions><fetch>*</fetch></permissions>\n"
	hook := func(id string) string {
		return fmt.Sprintf("<hooks><hook id=%q event=\"after_step\"><action primary=\"execute\" item_type=\"tool\" item_id=\"rye/bash\"/></hook></hooks>\n", id)
	}
	s.directive("base", "", contextXML("system k/who, after k/list")+files+hook("h-base"))
	s.directive("mid", "base", contextXML("before k/rules, system k/who")+fetch+hook("h-mid"))
	s.directive("leaf", "mid", contextXML("before k/list, before k/rules, suppress h-base"))
	s.directive("none", "leaf", "<permissions/>\n"+contextXML("suppress k/who"))
	s.directive("alone", "", "")

	for id, want := range map[string]struct{ chain, context, suppressed, from, hooks string }{
		"alone": {chain: "alone"},
		"base":  {"base", "system k/who of base, after k/list of base", "", "base", "base"},
		"mid":   {"mid base", "system k/who of base, before k/rules of mid, after k/list of base", "", "mid", "base mid"},
		"leaf": {"leaf mid base", "system k/who of base, before k/rules of mid, before k/list of leaf, after k/list of base",
			"h-base", "mid", "base mid"},
		"none": {"none leaf mid base", "before k/rules of mid, before k/list of leaf, after k/list of base", "h-base k/who", "none", "base mid"},
	} {
		c, err := compose(t, s.composer(), id)
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		var hooks []string
		for _, h := range c.Hooks {
			hooks = append(hooks, h.Directive)
		}
		got := []string{strings.Join(idsOf(c.Chain), " "), contextOf(c), strings.Join(c.Suppressed, " "), c.PermissionsFrom, strings.Join(hooks, " ")}
		if wants := []string{want.chain, want.context, want.suppressed, want.from, want.hooks}; !slices.Equal(got, wants) {
			t.Errorf("%s:\n got %q\nwant %q", id, got, wants)
		}
	}
	c, err := compose(t, s.composer(), "leaf")
	if err != nil || !slices.Equal(c.Permissions.Capabilities, []string{"rye.fetch.*", "rye.search.*"}) {
		t.Errorf("capabilities %+v, %v", c, err)
	}
}

// A hook may choose what a directive extends, and that it extends nothing.
func TestComposeWithAnotherTarget(t *testing.T) {
	t.Parallel()
	s := shelf{}
	s.directive("base", "", "")
	s.directive("other", "base", "")
	s.directive("leaf", "base", "")
	c := s.composer()
	leaf, err := c.Resolver.Find(item.Directive, "leaf")
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]string{"": "leaf", "base": "leaf base", "other": "leaf other base"} {
		got, err := c.Compose(leaf, target)
		if err != nil || strings.Join(idsOf(got.Chain), " ") != want {
			t.Errorf("with %q: %+v, %v", target, got, err)
		}
	}
	if _, err := c.Compose(leaf, "leaf"); !errors.Is(err, ErrCycle) {
		t.Errorf("routed to itself: %v", err)
	}
}

func TestComposeErrors(t *testing.T) {
	t.Parallel()
	s := shelf{}
	s.directive("self", "self", "")
	s.directive("a", "b", "")
	s.directive("b", "c", "")
	s.directive("c", "b", "")
	s.directive("lost", "parents/gone", "")
	s.directive("parents/gine", "", "")
	s.directive("broken", "not-xml", "")
	s["directives/not-xml.md"] = &fstest.MapFile{Data: []byte("```xml\n<directive name=\"x\">\n")}
	s.knowledge("k/rules", "Rules")
	s.directive("asks", "", contextXML("before k/ruls"))
	s.directive("inherits", "asks", "")
	s.directive("d0", "", "")
	for i := 1; i <= MaxChain; i++ {
		s.directive(fmt.Sprintf("d%d", i), fmt.Sprintf("d%d", i-1), "")
	}
	for id, want := range map[string]struct {
		code  tool.Code
		words []string
	}{
		"self":   {tool.CodeInvalidItem, []string{"self → self", "extends itself"}},
		"a":      {tool.CodeInvalidItem, []string{"a → b → c → b", "extends itself"}},
		"lost":   {tool.CodeNotFound, []string{"lost → parents/gone", "no directive"}},
		"broken": {tool.CodeInvalidItem, []string{"broken → not-xml"}},
		"asks":   {tool.CodeNotFound, []string{"asks (system:directives/asks.md)", "<before>k/ruls</before>", "no knowledge"}},
		// It is the ancestor's file that must be mended.
		"inherits": {tool.CodeNotFound, []string{"asks (system:directives/asks.md)", "<before>k/ruls</before>"}},
		"d10":      {tool.CodeInvalidItem, []string{"d10 → d9 → ", " → d1 → d0 ", "more than 10"}},
	} {
		_, err := compose(t, s.composer(), id)
		f := Fault(err)
		if f == nil || f.Code != want.code {
			t.Errorf("%s: %v (%+v)", id, err, f)
			continue
		}
		for _, words := range want.words {
			if !strings.Contains(f.Message, words) {
				t.Errorf("%s: %q does not say %q", id, f.Message, words)
			}
		}
	}
	if _, err := compose(t, s.composer(), "d9"); err != nil {
		t.Errorf("a chain of %d: %v", MaxChain, err)
	}
	for id, nearest := range map[string]string{"lost": "parents/gine", "asks": "k/rules"} {
		_, err := compose(t, s.composer(), id)
		if got, _ := Fault(err).Details["nearest_ids"].([]string); !slices.Contains(got, nearest) {
			t.Errorf("%s: nearest %v, want %s", id, got, nearest)
		}
	}
}

// The signature of every element counts, and not only that of the leaf.
func TestComposeChecksSignatures(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	key, err := sign.Generate(t.TempDir(), false, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	put := func(name, content string, signed bool) {
		data := []byte(content)
		if signed {
			kind := item.Directive
			if strings.HasPrefix(name, "knowledge/") {
				kind = item.Knowledge
			}
			id := strings.TrimPrefix(strings.TrimSuffix(name, ".md"), kind.Dir()+"/")
			if data, err = sign.Attach(data, ".md", sign.Name{Kind: string(kind), ID: id}, key, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(project, ".ai", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	put("directives/leaf.md", directiveText("leaf", "mid", ""), true)
	mode := trust.Strict
	roots := resolve.Roots{Project: project}
	c := Composer{Resolver: resolve.New(roots), Trust: &trust.Gate{
		Roots: roots, Own: func() (*sign.PublicKey, error) { return key.Public(), nil },
		Settings: func() (trust.Settings, error) { return trust.Settings{Mode: mode}, nil },
	}}
	for _, unsigned := range []string{"", "directive", "knowledge"} {
		put("directives/mid.md", directiveText("mid", "", contextXML("before k")), unsigned != "directive")
		put("knowledge/k.md", "Knowledge.\n", unsigned != "knowledge")
		mode = trust.Strict
		_, err := compose(t, c, "leaf")
		if unsigned == "" {
			if err != nil {
				t.Errorf("all is signed: %v", err)
			}
			continue
		}
		if !errors.Is(err, sign.ErrUnsigned) || Fault(err).Code != tool.CodeIntegrity || !strings.Contains(err.Error(), "mid") {
			t.Errorf("unsigned %s: %v", unsigned, err)
		}
		mode = trust.Warn
		got, err := compose(t, c, "leaf")
		if err != nil || len(got.Warnings()) != 1 || !strings.Contains(got.Warnings()[0], unsigned) {
			t.Errorf("unsigned %s in mode warn: %+v, %v", unsigned, got, err)
		}
	}
}

// Composition follows the rules for any directives, and a cycle never hangs.
func TestComposeLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, MaxChain+3).Draw(rt, "directives")
		id := rapid.Custom(func(rt *rapid.T) string { return fmt.Sprintf("k%d", rapid.IntRange(0, 4).Draw(rt, "k")) })
		some := rapid.SliceOfN(id, 0, 3)
		s := shelf{}
		for i := range 5 {
			s.knowledge(fmt.Sprintf("k%d", i), "K")
		}
		contexts, extends := make([]item.Context, n), make([]int, n)
		for i := range n {
			c := item.Context{
				System: some.Draw(rt, "system"), Before: some.Draw(rt, "before"), After: some.Draw(rt, "after"),
				Suppress: rapid.SliceOfN(id, 0, 1).Draw(rt, "suppress"),
			}
			contexts[i] = c
			// Mostly the next one, so that there are long chains; sometimes any, so that there are cycles.
			extends[i] = rapid.OneOf(rapid.Just(i+1), rapid.Just(i+1), rapid.IntRange(0, n)).Draw(rt, "extends")
			parent := ""
			if extends[i] < n {
				parent = fmt.Sprintf("d%d", extends[i])
			}
			s.directive(fmt.Sprintf("d%d", i), parent, contextXML(entries(c)))
		}
		got, err := compose(t, s.composer(), "d0")
		chain, sound := walk(extends)
		if !sound {
			if !errors.Is(err, ErrCycle) && !errors.Is(err, ErrChainTooLong) {
				rt.Fatalf("chain %v: %v", chain, err)
			}
			return
		}
		if err != nil || len(got.Chain) != len(chain) {
			rt.Fatalf("chain %v: %+v, %v", chain, got, err)
		}
		checkContext(rt, got, chain, contexts)
	})
}

// walk follows extends from the first; sound is false for a chain that is too
// long or has a cycle.
func walk(extends []int) (chain []int, sound bool) {
	for at := 0; at < len(extends); at = extends[at] {
		if slices.Contains(chain, at) || len(chain) == MaxChain {
			return chain, false
		}
		chain = append(chain, at)
	}
	return chain, true
}

func entries(c item.Context) string {
	var all []string
	for _, list := range []struct {
		name string
		ids  []string
	}{{"system", c.System}, {"before", c.Before}, {"after", c.After}, {"suppress", c.Suppress}} {
		for _, id := range list.ids {
			all = append(all, list.name+" "+id)
		}
	}
	return strings.Join(all, ", ")
}

func checkContext(rt *rapid.T, got *Composition, chain []int, contexts []item.Context) {
	var wanted []string // all that is asked for, root first, with repetitions
	suppressed := map[string]bool{}
	for _, position := range []string{System, Before, After} {
		for _, d := range slices.Backward(chain) {
			for _, id := range at(contexts[d], position) {
				wanted = append(wanted, position+" "+id)
			}
			for _, id := range contexts[d].Suppress {
				suppressed[id] = true
			}
		}
	}
	var want []string
	for i, entry := range wanted {
		_, id, _ := strings.Cut(entry, " ")
		if !suppressed[id] && slices.Index(wanted, entry) == i {
			want = append(want, entry)
		}
	}
	var have []string
	for _, ref := range got.Context {
		have = append(have, ref.Position+" "+ref.ID)
	}
	if !slices.Equal(have, want) {
		rt.Fatalf("context\n%q, want\n%q", have, want)
	}
	if len(got.Suppressed) != len(suppressed) {
		rt.Fatalf("suppressed %q, want %v", got.Suppressed, suppressed)
	}
}

package trust_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// TestCheck is the table of modes and verdicts.
func TestCheck(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	mallory, known := newKey(t, 9), newKey(t, 8)
	path := h.vouch(item.Project, known, known)
	subject := func(content []byte) trust.Subject {
		return trust.Subject{Kind: item.Directive, ID: "team/review", Space: item.Project, Path: "/p/review.md", Ext: ".md", Content: content}
	}
	signed := attach([]byte(directiveText), ".md", h.own, noon)
	block := directiveText[strings.Index(directiveText, "<directive"):strings.Index(directiveText, "\n```\n\nRead")]
	files := map[string]trust.Subject{
		"genuine":                subject(signed),
		"unsigned":               subject([]byte(directiveText)),
		"altered":                subject(append(signed[:len(signed):len(signed)], 'x')),
		"stranger":               subject(attach([]byte(directiveText), ".md", mallory, noon)),
		"known":                  subject(attach([]byte(directiveText), ".md", known, noon)),
		"older":                  subject(older(directiveText, directiveText, ".md", h.own)),
		"block":                  subject(older(directiveText, block, ".md", h.own)),
		"moved":                  subject(attachAs([]byte(directiveText), ".md", sign.Name{Kind: "knowledge", ID: "team/review"}, h.own, noon)),
		"older, of another kind": {Kind: item.Knowledge, ID: "n", Space: item.Project, Path: "/p/n.md", Ext: ".md", Content: older("text", "text", ".md", h.own)},
		"older settings":         {ID: "agent/hooks.yaml", Space: item.User, Path: "/u/hooks.yaml", Ext: ".yaml", Content: older("a: 1\n", "a: 1\n", ".yaml", h.own)},
		"system":                 {Kind: item.Tool, ID: "rye/x", Space: item.System, Path: "system:tools/rye/x.yaml", Ext: ".yaml", Content: []byte("x")},
		"hooks":                  {ID: "agent/hooks.yaml", Space: item.Project, Path: "/p q/$(id)/hooks.yaml", Ext: ".yaml", Content: []byte("x")},
	}
	refusals := map[string]struct {
		is        error
		says, try string
	}{
		"unsigned":               {sign.ErrUnsigned, `directive "team/review" in the project space is refused: it is not signed`, "rye-mcp sign --type directive team/review"},
		"altered":                {sign.ErrBadSignature, "it was changed after it was signed", "rye-mcp sign --type directive team/review"},
		"stranger":               {trust.ErrUntrustedKey, mallory.Fingerprint(), "rye-mcp keys trust " + mallory.Fingerprint() + ".pem --owner NAME"},
		"known":                  {trust.ErrUntrustedKey, path, "rye-mcp keys trust " + path},
		"older":                  {sign.ErrUnbound, "for no kind and id", "rye-mcp sign --renew, which lists all that you have signed before; or rye-mcp sign --type directive team/review, after reading the file; or set integrity.accept_legacy: [directive] in"},
		"block":                  {trust.ErrBodyNotCovered, "body not covered", "integrity.accept_legacy_directives"},
		"moved":                  {sign.ErrOtherItem, `made for knowledge "team/review" and not for directive "team/review"`, "rye-mcp sign --type directive team/review"},
		"older, of another kind": {sign.ErrUnbound, "for no kind and id", "integrity.accept_legacy: [knowledge]"},
		"older settings":         {sign.ErrUnbound, "for no kind and id", "integrity.accept_legacy: [settings]"},
		"system":                 {trust.ErrNotShipped, `tool "rye/x" in the system space`, "install rye-mcp again"},
		"hooks":                  {sign.ErrUnsigned, "file /p q/$(id)/hooks.yaml", `rye-mcp sign '/p q/$(id)/hooks.yaml'`},
	}
	for _, settings := range []trust.Settings{
		{}, {Mode: "nonsense"}, {Mode: trust.Strict}, {Mode: trust.Strict, AcceptLegacyDirectives: true},
		{Mode: trust.Strict, AcceptLegacy: []string{"directive"}}, {AcceptLegacy: []string{"knowledge", "settings"}, AcceptLegacyDirectives: true},
		{AcceptLegacy: []string{"directive"}, AcceptLegacyDirectives: true},
		{Mode: trust.Warn}, {Mode: trust.Warn, AcceptLegacyDirectives: true}, {Mode: trust.Off}, trust.Settings{}.ForDevelopment(),
	} {
		checker := trust.Checker{Settings: settings, Keyring: h.load()}
		for name, file := range files {
			decision, err := checker.Check(file)
			want, bad := refusals[name]
			allowed := settings.Mode == trust.Warn || accepts(settings, name)
			switch {
			case settings.Mode == trust.Off:
				if err != nil || decision != (trust.Decision{}) {
					t.Errorf("off, %s: %+v, %v", name, decision, err)
				}
			case !bad:
				if err != nil || decision.Warning != "" || !decision.Verdict.Status.Good() {
					t.Errorf("%+v, %s: %+v, %v", settings, name, decision, err)
				}
			case allowed:
				if err != nil || !strings.Contains(decision.Warning, file.String()+" is used although ") ||
					strings.Contains(decision.Warning, "rye-mcp sign") || !strings.Contains(decision.Try, want.try) {
					t.Errorf("%+v, %s: %+v, %v", settings, name, decision, err)
				}
			default:
				refused, ok := errors.AsType[*trust.RefusedError](err)
				if !ok || !errors.Is(err, want.is) || !strings.Contains(err.Error(), want.says) || !strings.Contains(refused.Try(), want.try) {
					t.Errorf("%+v, %s: error %v, want %v with %q, mended by %q", settings, name, err, want.is, want.says, want.try)
				} else if refused.Subject.Content != nil {
					t.Errorf("%s: the error holds the content", name)
				}
			}
		}
	}
}

// accepts says which of the files of TestCheck settings let pass.
func accepts(s trust.Settings, file string) bool {
	kind := map[string]string{
		"older": "directive", "block": "directive", "older, of another kind": "knowledge", "older settings": "settings",
	}[file]
	return kind != "" && slices.Contains(s.AcceptLegacy, kind) && (file != "block" || s.AcceptLegacyDirectives)
}

func TestForDevelopment(t *testing.T) {
	t.Parallel()
	for mode, want := range map[trust.Mode]trust.Mode{"": trust.Warn, trust.Strict: trust.Warn, trust.Warn: trust.Warn, trust.Off: trust.Off} {
		got := trust.Settings{Mode: mode, AcceptLegacyDirectives: true}.ForDevelopment()
		if got.Mode != want || !got.AcceptLegacyDirectives {
			t.Errorf("%q becomes %+v, want %q", mode, got, want)
		}
	}
}

// Without a key the user is told how to get one first.
func TestMendWithoutKey(t *testing.T) {
	t.Parallel()
	checker := trust.Checker{Keyring: trust.Load(trust.Sources{})}
	_, err := checker.Check(trust.SubjectOf(&resolve.Found{
		Entry:   resolve.Entry{Kind: item.Tool, ID: "it's", Space: item.User, Path: "/u/it's.py", Ext: ".py"},
		Content: []byte("x"),
	}))
	refused, ok := errors.AsType[*trust.RefusedError](err)
	if !ok || !strings.Contains(refused.Try(), `rye-mcp keys generate, then rye-mcp sign --type tool 'it'\''s'`) {
		t.Errorf("error %v, mended by %q", err, refused.Try())
	}
}

package cli

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// TestTrustJSON: each form of trust says with --json what it decided and what that is about.
// Standard output has the JSON alone, and what somebody is asked stands on standard error.
func TestTrustJSON(t *testing.T) {
	t.Parallel()
	dir, user := realDir(t), realDir(t)
	config := filepath.Join(dir, ".ai", "config", "agent")
	for name, content := range map[string]string{
		"resilience.yaml":          "limits:\n  spend: 5\n",
		"providers/anthropic.yaml": "headers:\n  Authorization: Bearer tell-nobody\n",
	} {
		path := filepath.Join(config, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	key, err := sign.Generate(user, false, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	spend := settingJSON{Path: filepath.Join(config, "resilience.yaml"), Line: 2, Key: "limits.spend", Holds: 0.5, Says: 5.0}
	for _, tt := range []struct {
		args     string
		code     int
		decision decision
		standing trust.Standing
		settings bool // those that are not accepted are listed
	}{
		{"--diff", exitOK, showed, trust.Stranger, true},
		{"", exitUsage, "", "", true}, // nobody can be asked
		{"--yes", exitOK, accepted, trust.Accepted, true},
		{"--diff", exitOK, showed, trust.Accepted, false},
		{"", exitOK, nothingThere, trust.Accepted, false},
		{"--follow " + key.Fingerprint() + " --yes", exitOK, followed, trust.Accepted, false},
		{"--revoke", exitOK, revoked, trust.Stranger, true},
		{"--revoke", exitOK, nothingThere, trust.Stranger, true},
	} {
		var out, said bytes.Buffer
		sys := testSystem(dir, map[string]string{"USER_SPACE": user})
		sys.Stdin, sys.Stdout, sys.Stderr = strings.NewReader(""), &out, &said
		code := Main(sys, append([]string{"--project", dir, "trust", "--json"}, strings.Fields(tt.args)...))
		if code != tt.code {
			t.Fatalf("trust --json %s: code %d, %s", tt.args, code, said.String())
		}
		if tt.code != exitOK {
			if out.Len() > 0 || !strings.Contains(said.String(), "0.5 → 5\n") {
				t.Errorf("trust --json %s: %q, beside it %q", tt.args, out.String(), said.String())
			}
			continue
		}
		var told trustJSON
		if err := json.Unmarshal(out.Bytes(), &told); err != nil {
			t.Fatalf("trust --json %s: %v in %q", tt.args, err, out.String())
		}
		if told.Decision != tt.decision || told.Standing != tt.standing || told.Project != dir {
			t.Errorf("trust --json %s: %+v, want %s, %s", tt.args, told, tt.decision, tt.standing)
		}
		if slices.Contains(told.Settings, spend) != tt.settings || tt.standing == trust.Accepted == (told.AcceptedAt == "") {
			t.Errorf("trust --json %s: settings %+v, accepted at %q", tt.args, told.Settings, told.AcceptedAt)
		}
		if tt.decision == followed && !slices.Equal(told.Follow, []string{key.Fingerprint()}) {
			t.Errorf("trust --json %s: follows %q", tt.args, told.Follow)
		}
		if strings.Contains(out.String()+said.String(), "tell-nobody") {
			t.Errorf("trust --json %s tells a secret: %s", tt.args, out.String())
		}
	}
}

// TestRevokeUnreadable: a project whose settings cannot be read is forgotten all the same, and the
// person is told so.
func TestRevokeUnreadable(t *testing.T) {
	t.Parallel()
	dir, user := realDir(t), realDir(t)
	sys := testSystem(dir, map[string]string{"USER_SPACE": user})
	var said bytes.Buffer
	sys.Stdin, sys.Stdout, sys.Stderr = strings.NewReader(""), &said, &said
	if err := os.MkdirAll(filepath.Join(dir, ".ai", "config"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"trust", "--yes"}, {"trust", "--revoke"}} {
		if code := Main(sys, append([]string{"--project", dir}, args...)); code != exitOK {
			t.Fatalf("%q: code %d, %s", args, code, said.String())
		}
		if err := errors.Join(os.RemoveAll(filepath.Join(dir, ".ai")), os.WriteFile(filepath.Join(dir, ".ai"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(said.String(), "may tighten what holds without them, and no more.") {
		t.Errorf("said %q", said.String())
	}
}

// TestAdoptionJSON: JSON tells what was believed of a stranger's state.
func TestAdoptionJSON(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	key, err := sign.Generate(realDir(t), false, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	sys := testSystem(dir, map[string]string{"USER_SPACE": dir})
	sys.Stdout = &out
	keyring, err := openKeyring(sys, options{project: dir})
	if err != nil {
		t.Fatal(err)
	}
	call := trusting{sys: sys, trustFlags: trustFlags{asJSON: true}}
	if err := call.tellAdoption(keyring, place.Adoption{Dir: "/d", Key: key.Public(), Threads: []string{"a"}, Others: 2}, adopted, ""); err != nil {
		t.Fatal(err)
	}
	var told adoptionJSON
	if err := json.Unmarshal(out.Bytes(), &told); err != nil {
		t.Fatal(err)
	}
	if told.Decision != adopted || told.Dir != "/d" || told.Fingerprint != key.Fingerprint() || len(told.Threads) != 1 || told.Others != 2 || told.Owner != "" {
		t.Errorf("told %+v", told)
	}
}

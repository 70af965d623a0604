package config_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// Settings of tools come from every space, and a project's when its user has accepted
// them, as they were then.
func TestLayers(t *testing.T) {
	t.Parallel()
	files := map[string]string{"user/mail/mail.yaml": "from: me\n", "project/mail/mail.yaml": "from: project\n"}
	values := func(l *config.Loader) []any {
		t.Helper()
		layers, err := l.Read().Layers("mail/mail.yaml")
		if err != nil {
			t.Fatal(err)
		}
		var all []any
		for _, layer := range layers {
			all = append(all, layer.Values["from"])
		}
		return all
	}
	stranger, _ := spaces(t, files)
	if got := values(stranger); !reflect.DeepEqual(got, []any{"me"}) {
		t.Errorf("a stranger's project: %v", got)
	}
	own, roots := accepted(t, files)
	if err := os.WriteFile(filepath.Join(roots.Project, ".ai", "config", "mail", "mail.yaml"), []byte("from: later\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := values(own); !reflect.DeepEqual(got, []any{"me", "project"}) {
		t.Errorf("an accepted project: %v", got)
	}
	if layers, err := own.Read().Layers("none.yaml"); err != nil || len(layers) != 0 {
		t.Errorf("no file: %v, %v", layers, err)
	}
	for _, path := range []string{"", ".", "/etc/passwd", "../keys/signing/private_key.pem", "a/../b", "a\x00"} {
		if _, err := own.Read().Layers(path); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%q: %v", path, err)
		}
	}
	broken, _ := spaces(t, map[string]string{"user/mail/mail.yaml": "- a\n"})
	if _, err := broken.Read().Layers("mail/mail.yaml"); err == nil || !strings.Contains(err.Error(), "want a mapping") {
		t.Error(err)
	}
}

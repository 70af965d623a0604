package cli

import (
	"bytes"
	"os"
	"testing"
)

// A file is no terminal: no colours unless they are asked for.
func TestDisplay(t *testing.T) {
	t.Parallel()
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	none := func(string) string { return "" }
	for mode, want := range map[colorMode]bool{colorAuto: false, colorAlways: true, colorNever: false} {
		d := newDisplay(System{Stdout: file, Getenv: none}, options{color: mode})
		if d.colors != want || d.width != 0 {
			t.Errorf("%s: %+v", mode, d)
		}
	}
	d := newDisplay(System{Stdout: &bytes.Buffer{}, Getenv: none}, options{color: colorAuto})
	if d.colors || d.paint(red, "x") != "x" {
		t.Errorf("no file: %+v", d)
	}
	d.colors = true
	if got := d.paint(red, "x") + d.paint(uncolored, "y") + d.paint(red, ""); got != "\x1b[31mx\x1b[0my" {
		t.Errorf("painted %q", got)
	}
	mode := colorAuto
	if err := mode.Set("sometimes"); err == nil || mode != colorAuto {
		t.Errorf("sometimes: %v, %s", err, mode)
	}
}

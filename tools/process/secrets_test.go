//go:build linux || darwin

package process

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

func TestDetachHandsOverSecrets(t *testing.T) {
	t.Parallel()
	long := "LONG=" + strings.Repeat("x", 1<<20) // more than a pipe holds
	for name, c := range map[string]struct {
		secrets []string
		want    string
	}{
		"some":         {[]string{"A=1", "B=two=2", "C="}, `"A=1 B=two=2 C="`},
		"none":         {[]string{}, `""`},
		"nobody gives": {nil, "error: nobody hands over secrets: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub := newHub(t)
			spec := hub.helper().spec("thread", nil)
			spec.Secrets = c.secrets
			_, err := Detach(spec)
			must(t, err)
			thread := hub.peer("thread")
			if got := thread.ask("secrets"); !strings.HasPrefix(got, c.want) {
				t.Errorf("it was given %s, want %s", got, c.want)
			}
			if env := thread.ask("env"); strings.Contains(env, "two") {
				t.Errorf("environment %s", env)
			}
			if got := thread.ask("secrets"); !strings.HasPrefix(got, "error: ") {
				t.Errorf("a second time %s", got)
			}
		})
	}
	t.Run("more than a pipe holds", func(t *testing.T) {
		t.Parallel()
		hub := newHub(t)
		spec := hub.helper().spec("thread", nil)
		spec.Secrets = []string{long, "LAST=1"}
		returned := make(chan error, 1)
		go func() {
			_, err := Detach(spec)
			returned <- err
		}()
		thread := hub.peer("thread")
		thread.want("secrets", fmt.Sprintf(`"%d bytes"`, len(long)+len(" LAST=1")))
		must(t, <-returned)
	})
	t.Run("it dies before it has read them", func(t *testing.T) {
		t.Parallel()
		spec := Spec{Path: "/bin/sh", Args: []string{"-c", "exit 3"}, LogPath: filepath.Join(t.TempDir(), "log"), Secrets: []string{long}}
		started, err := Detach(spec)
		must(t, err)
		arrives(t, "end", started.Done())
		if started.Exit().Code != 3 {
			t.Errorf("exit %v", started.Exit())
		}
	})
}

// An entry that was not said to the end does not count.
func TestReadSecrets(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]int{
		"\x00": 0, "A=1\x00\x00": 1, "A=1\x00B=2\x00\x00": 2, "": -1, "A=1": -1, "A=1\x00": -1, "A=1\x00B=2": -1, "A=1\x00B=2\x00": -1,
	} {
		got, err := readSecrets(strings.NewReader(content))
		if refused := errors.Is(err, errNoSecrets); refused != (want < 0) || !refused && (err != nil || len(got) != want) {
			t.Errorf("%q: %q, %v", content, got, err)
		}
	}
}

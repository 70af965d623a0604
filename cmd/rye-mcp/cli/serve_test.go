package cli

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// The folders that clients over HTTP may work in are fixed when the server starts.
func TestChooseNow(t *testing.T) {
	t.Parallel()
	base := realDir(t)
	project, bare, beside := makeDir(t, base, "project"), makeDir(t, base, "bare"), makeDir(t, base, "beside")
	makeDir(t, project, ".ai")
	tests := []struct {
		name, wd, flag string
		allowed        []string
		chosen         string   // "" for none
		roots          []string // nil: refused
	}{
		{"the working directory", project, "", nil, project, []string{project}},
		{"--project", bare, project, nil, project, []string{project}},
		{"no project", bare, "", nil, "", nil},
		{"clients choose", bare, "", []string{base}, "", []string{base}},
		{"clients choose, with a default", project, "", []string{base}, project, []string{base}},
		{"the working directory is not allowed", project, "", []string{beside}, "", []string{beside}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ps, err := newProjects(testSystem(tt.wd, nil), tt.flag, tt.allowed, zerolog.Nop(), noRoots)
			if err != nil {
				t.Fatal(err)
			}
			defer ps.close()
			err = ps.chooseNow()
			if tt.roots == nil {
				if usage := new(usageError); !errors.As(err, &usage) || !strings.Contains(usage.try, "--project") {
					t.Errorf("error %v, want a usage error", err)
				}
				return
			}
			if err != nil || ps.chosen != tt.chosen || !slices.Equal(ps.allowed, tt.roots) {
				t.Errorf("chosen %q of %v, %v; want %q of %v", ps.chosen, ps.allowed, err, tt.chosen, tt.roots)
			}
		})
	}
}

func TestReadToken(t *testing.T) {
	t.Parallel()
	const good = "0123456789abcdef"
	tests := []struct {
		name, content string
		mode          os.FileMode
		token, try    string // try is part of the advice
	}{
		{"good", good + "\n", 0o600, good, ""},
		{"read only", good, 0o400, good, ""},
		{"for others too", good, 0o640, "", "chmod 600"},
		{"short", good[1:], 0o600, "", "openssl"},
		{"two words", good + " " + good, 0o600, "", "openssl"},
		{"not ASCII", good + "é", 0o600, "", "openssl"},
		{"empty", "", 0o600, "", "openssl"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "token")
			if err := os.WriteFile(path, []byte(tt.content), tt.mode); err != nil {
				t.Fatal(err)
			}
			token, err := readToken(path)
			checkToken(t, token, err, tt.token, tt.try)
		})
	}
	token, err := readToken(filepath.Join(t.TempDir(), "none"))
	checkToken(t, token, err, "", "umask 077")
	token, err = readToken(t.TempDir())
	checkToken(t, token, err, "", "a file that can be read")
}

// checkToken wants a token, or a usage error whose advice has try in it.
func checkToken(t *testing.T, token string, err error, want, try string) {
	t.Helper()
	usage := new(usageError)
	refused := errors.As(err, &usage)
	if token != want || refused == (want != "") || !strings.Contains(usage.try, try) {
		t.Errorf("token %q, error %v, try %q", token, err, usage.try)
	}
}

package cli

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// What clients over HTTP may work in is fixed when the server starts.
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

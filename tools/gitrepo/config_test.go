package gitrepo

import (
	"fmt"
	"testing"
)

func TestFactsOf(t *testing.T) {
	t.Parallel()
	got := factsOf("[core]\n\trepositoryformatversion = 1\n\tfileMode=FALSE ; no\n bare = false\n\tfsmonitor = ./evil\n\tautocrlf = input\n\tsymlinks\n" +
		"[Extensions] objectFormat = sha256\n[core \"x\"]\n\teol = lf\n[core]\n\thooksPath = x\n\teol = evil\n\tignorecase = true\\\nfalse\n[include]\n\tpath = x\n")
	want := map[string]string{
		"core.repositoryformatversion": "1", "core.filemode": "false", "core.autocrlf": "input", "core.symlinks": "true", "extensions.objectformat": "sha256",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

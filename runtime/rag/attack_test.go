package rag_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/rag"
)

// TestAttackHugeEntry: a thread stores an entry of 10 MB, or asks with a text of 10 MB.
// The entry is refused with what is accepted, and of the question the first 64 words count.
func TestAttackHugeEntry(t *testing.T) {
	t.Parallel()
	x := library(t)
	huge := strings.Repeat("uuid and more ", 10<<20/14)
	if _, err := x.Store(t.Context(), []rag.Row{row("huge", huge)}); !isRefusal(err, "text") || !strings.Contains(err.Error(), fmt.Sprint(rag.MaxText)) {
		t.Errorf("%v", err)
	}
	if answer := find(t, x, ask(huge)); keys(answer) != "uuid" {
		t.Errorf("%s", show(answer))
	}
}

// TestAttackHostileNames: namespaces, keys, projects and fields are chosen to be paths, SQL or words of FTS5.
// They name nothing but themselves, and no file is made for them.
func TestAttackHostileNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x := openWith(t, rag.At(pathIn(dir), mark).WithTests(2, nil))
	names := []string{
		"../../escape", "/etc/passwd", `C:\x`, "a'; DROP TABLE entries; --", `"`, "''", "*x", "n1", "n1 OR n2", "scope : n1", "-", ".", "..", "NUL", "%s%n", "ns\u202e", "ﬁ", "rye.memory",
	}
	for _, name := range names {
		for i := range 4 {
			r := row(fmt.Sprint(name, i), "common words", float32(i+1), 1)
			r.Namespace, r.Project, r.ThreadID, r.ChainRoot, r.Model = name, name, name, name, name
			store(t, x, r)
		}
	}
	for _, name := range names {
		q := ask("common", 1, 1)
		q.Namespace, q.Project, q.Model = name, name, name
		answer := find(t, x, q)
		if answer.Rows != 4 || len(answer.Hits) != 4 || !strings.HasPrefix(answer.Hits[0].Key, name) {
			t.Errorf("%q: %s", name, show(answer))
		}
		q.ExcludeThread = name
		if answer := find(t, x, q); len(answer.Hits) != 0 {
			t.Errorf("%q comes although it is excluded: %s", name, show(answer))
		}
	}
	if deleted, err := x.Delete(t.Context(), rag.Deletion{Namespace: names[3], Project: rag.AllProjects, All: true}); err != nil || deleted != 4 {
		t.Errorf("%d deleted, %v", deleted, err)
	}
	made := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			made++
			if name := d.Name(); !strings.HasPrefix(name, "memory.") && !strings.HasSuffix(name, ".codes") {
				t.Errorf("%s was made", path)
			}
		}
		return err
	})
	if err != nil || made == 0 {
		t.Errorf("%d files, %v", made, err)
	}
}

// TestAttackQuestionSyntax: a question is written as a query of FTS5, or as one that it cannot read.
// Its words are looked for, and nothing else of it counts.
func TestAttackQuestionSyntax(t *testing.T) {
	t.Parallel()
	x := library(t)
	secret := row("secret", "the uuid of others")
	secret.Namespace = "others"
	store(t, x, secret)
	for _, text := range []string{
		`scope : "n2" AND uuid`, `uuid" OR scope : "n2`, "uuid NOT uuid", "NEAR(uuid, 5)", "^uuid", "uuid*", `"uuid`, "(((uuid", "{text scope} : uuid", "uuid + uuid",
		"-uuid", "uuid\x00", "\xff uuid \xfe", "AND uuid OR", `') UNION SELECT text FROM entries; uuid`,
	} {
		answer := find(t, x, ask(text))
		if !strings.Contains(" "+keys(answer)+" ", " uuid ") || strings.Contains(keys(answer), "secret") {
			t.Errorf("%q finds %q", text, keys(answer))
		}
	}
}

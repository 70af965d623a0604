package main_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// legacySign is legacysign [-whole] FILE...: it signs files with the key of the
// user space, for no kind and id: directives the way the original system does, over
// the XML block only, or with -whole any file the way earlier versions did.
func legacySign(ts *testscript.TestScript, neg bool, args []string) {
	whole := len(args) > 0 && args[0] == "-whole"
	if whole {
		args = args[1:]
	}
	if neg || len(args) == 0 {
		ts.Fatalf("usage: legacysign [-whole] FILE...")
	}
	key, err := sign.Load(ts.Getenv("USER_SPACE"))
	ts.Check(err)
	for _, name := range args {
		path := ts.MkAbs(name)
		src, err := os.ReadFile(path)
		ts.Check(err)
		_, src = sign.Split(src, filepath.Ext(path))
		part := src
		if !whole {
			const end = "</directive>"
			from, to := bytes.Index(src, []byte("<directive")), bytes.LastIndex(src, []byte(end))
			if from < 0 || to < from {
				ts.Fatalf("legacysign: %s is no directive", name)
			}
			part = src[from : to+len(end)]
		}
		ts.Check(os.WriteFile(path, append([]byte(legacyLine(path, part, key)), src...), 0o600))
	}
}

// legacyLine is the line of an older signature over a part of a file.
func legacyLine(path string, part []byte, key *sign.Key) string {
	sum := sha256.Sum256(part)
	hash := hex.EncodeToString(sum[:])
	line := sign.Signature{
		Time: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), Hash: hash, Sig: key.Sign(hash), Fingerprint: key.Fingerprint(),
	}
	if filepath.Ext(path) == ".md" {
		return "<!-- " + line.String() + " -->\n"
	}
	return "# " + line.String() + "\n"
}

// replaceIn is replace FILE OLD NEW: it replaces every OLD in a file; \r and \n in
// them are the line ends.
func replaceIn(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: replace FILE OLD NEW")
	}
	lineEnds := func(s string) []byte {
		return bytes.ReplaceAll(bytes.ReplaceAll([]byte(s), []byte(`\r`), []byte("\r")), []byte(`\n`), []byte("\n"))
	}
	path := ts.MkAbs(args[0])
	src, err := os.ReadFile(path)
	ts.Check(err)
	changed := bytes.ReplaceAll(src, lineEnds(args[1]), lineEnds(args[2]))
	if bytes.Equal(changed, src) {
		ts.Fatalf("replace: %s has no %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(path, changed, 0o600))
}

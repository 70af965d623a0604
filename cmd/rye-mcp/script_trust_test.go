package main_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// legacySign is legacysign FILE: it signs a directive with the key of the user
// space the way the original system does, over the XML block only.
func legacySign(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: legacysign FILE")
	}
	key, err := sign.Load(ts.Getenv("USER_SPACE"))
	ts.Check(err)
	path := ts.MkAbs(args[0])
	src, err := os.ReadFile(path)
	ts.Check(err)
	const end = "</directive>"
	from, to := bytes.Index(src, []byte("<directive")), bytes.LastIndex(src, []byte(end))
	if from < 0 || to < from {
		ts.Fatalf("legacysign: %s is no directive", args[0])
	}
	sum := sha256.Sum256(src[from : to+len(end)])
	hash := hex.EncodeToString(sum[:])
	line := sign.Signature{
		Time: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), Hash: hash, Sig: key.Sign(hash), Fingerprint: key.Fingerprint(),
	}
	ts.Check(os.WriteFile(path, append([]byte("<!-- "+line.String()+" -->\n"), src...), 0o600))
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

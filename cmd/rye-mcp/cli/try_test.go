package cli

import (
	"bytes"
	"crypto/rand"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// TestTry: the commonest mistakes of a person are answered with what to do, and not with the
// help of the command alone.
func TestTry(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	dir := realDir(t)
	folder := filepath.Join(dir, ".ai", "directives")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		filepath.Join(dir, "text"): "text", filepath.Join(dir, "list"): `[{"name":"Ada"},3]`,
		filepath.Join(folder, "hello.md"): "# Hello\n\n```xml\n<directive name=\"hello\" version=\"1.0.0\"/>\n```\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := sign.Generate(filepath.Join(dir, "home"), false, rand.Reader); err != nil {
		t.Fatal(err)
	}
	for line, try := range map[string]string{
		"run helo":                                   "did you mean hello?",
		"run hello":                                  "rye-mcp sign --type directive hello, after reading the file",
		"run nosuch/directive":                       "rye-mcp items list",
		"threads lst":                                "rye-mcp threads list",
		"threads show nosuch":                        "rye-mcp run DIRECTIVE",
		"threads list --stats running":               "rye-mcp threads list --status",
		"threads list --status foo":                  "--status created,running,completed,error,cancelled,continued",
		"threads watch --since 3x":                   "--since DURATION: ",
		"run hello --input":                          "--input name=value: an input as name=value; ",
		"threads cost --since foo":                   "--since 30d",
		"threads cancel":                             "rye-mcp threads cancel latest; rye-mcp threads list shows the ids",
		"threads wait":                               "rye-mcp threads wait review-17 --timeout 10m && rye-mcp run report",
		"threads call get_status":                    "rye-mcp threads call get_status --help",
		"threads map hello --items nosuch":           "another path; ls . shows what there is",
		"threads map hello --items {dir}/gone/items": "another path; ls {dir} shows what there is",
		"threads map hello --items {dir}/text":       tryItems,
		"threads map hello --items {dir}/list":       tryItems,
		"threads import {dir}/text":                  "rye-mcp threads export ID --out FILE writes one",
		"sign":                                       "rye-mcp sign review/security",
		"version x":                                  "rye-mcp version",
		"config set agent provider.defalt x":         "rye-mcp config show agent",
		"config set agent threads.max_running abc":   "rye-mcp config show agent shows the values that hold",
		"config set resilience limits.spend -1":      "-- before it: rye-mcp config set -- … -1",
		"config set agnt a b":                        "rye-mcp config show agent",
		"config set agent":                           "rye-mcp config set agent provider.default openai",
		"keys trust {dir}/text":                      "the PEM of a public key, which rye-mcp keys show prints for its owner",
		"keys trust {dir}/gone":                      "another path; ls {dir} shows what there is",
		"keys trust {dir}":                           "the path of a file",
		"models --provider openia":                   "rye-mcp models --provider openai",
		"mcp discover nosuch":                        "rye-mcp mcp list shows the servers; rye-mcp mcp add makes one",
		"serve --http {taken}":                       "another port, or port 0 for any that is free",
		"memory list":                                "rye-mcp config set memory enabled true --user",
		"replay {dir}/text":                          "rye-mcp threads export ID --out FILE writes one",
		"workers list":                               "rye-mcp help guides/workers",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			filled := strings.NewReplacer("{dir}", dir, "{taken}", taken.Addr().String())
			var said bytes.Buffer
			sys := testSystem(dir, map[string]string{"USER_SPACE": filepath.Join(dir, "home")})
			sys.Stdin, sys.Stdout, sys.Stderr = strings.NewReader(""), io.Discard, &said
			code := Main(sys, append([]string{"--project", dir}, strings.Fields(filled.Replace(line))...))
			if want := "\nTry:   " + filled.Replace(try); code == exitOK || !strings.Contains(said.String(), want) {
				t.Errorf("code %d, %q; want %q", code, said.String(), want)
			}
		})
	}
}

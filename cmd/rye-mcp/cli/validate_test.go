package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/validate"
)

// A report of all items counts what has one cause, with examples, and tells all of the
// rest; a report of what was named tells everything.
func TestReportGroupsByCause(t *testing.T) {
	t.Parallel()
	r := validate.Report{Items: 900, Errors: 7, Warnings: 901}
	for i := range 900 {
		r.Findings = append(r.Findings, validate.Finding{Level: validate.Warning, Code: validate.CodeSignature, Path: fmt.Sprintf("k%03d.md", i), Message: "not signed"})
	}
	for i := range 7 {
		r.Findings = append(r.Findings, validate.Finding{Level: validate.Error, Code: validate.CodeParse, Path: fmt.Sprintf("d%d.md", i), Line: 1, Message: "no block"})
	}
	r.Findings = append(r.Findings, validate.Finding{Level: validate.Warning, Code: validate.CodeShadowed, Path: "x.md", Message: "never used"})
	var out bytes.Buffer
	if err := writeReport(display{out: &out}, r, true); err != nil {
		t.Fatal(err)
	}
	const want = `error parse: 7 times, for example:
d0.md:1: error: no block [parse]
d1.md:1: error: no block [parse]
d2.md:1: error: no block [parse]
    and 4 more; --json lists all

warning signature: 900 times, for example:
k000.md: warning: not signed [signature]
k001.md: warning: not signed [signature]
k002.md: warning: not signed [signature]
    and 897 more; --json lists all

x.md: warning: never used [shadowed]

900 items: 7 errors, 901 warnings
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	if err := writeReport(display{out: &out}, r, false); err != nil || strings.Count(out.String(), "\n") != 908+2 {
		t.Errorf("%d lines, %v", strings.Count(out.String(), "\n"), err)
	}
}

package cli

import (
	"context"
	"encoding/xml"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/runtime/recording"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

type testFlags struct {
	update bool
	json   bool
	junit  string
	trust  string
}

// testsFolder is where a project keeps its recordings.
const testsFolder = ".ai/tests"

func newTestCommand(sys System, opts *options) *cobra.Command {
	var flags testFlags
	cmd := &cobra.Command{
		Use:   "test [PATTERN...]",
		Short: "Replay the recorded threads of a project, and tell what is different today",
		Long: `Replay every recording below .ai/tests (files that end in .ryetest), as "rye-mcp
replay" does one, and write a line for each and what differs. A PATTERN is part of a
name, or one with * and ?: "review", "review/*".

A difference that you want is made the new expectation with --update: the recording
keeps the answers of the model and of the tools, and from then on is held against what
today's directive makes of them; it is signed by you. A replay that asks the model for
more than is on record cannot be updated: run the directive again and export that.

Exit code 0 when nothing differs, 1 when something does, 2 when nothing differs and
something cannot be replayed.`,
		Example: `  rye-mcp threads export latest --out .ai/tests/review/small.ryetest
  rye-mcp test
  rye-mcp test 'review/*' --update`,
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			return testCommand(cmd.Context(), sys, *opts, args, flags)
		}),
	}
	cmd.Flags().BoolVar(&flags.update, "update", false, "make what differs the new expectation")
	cmd.Flags().StringVar(&flags.junit, "junit", "", "write the results to this file too, as JUnit's XML; a report that is there is replaced")
	cmd.Flags().StringVar(&flags.trust, "trust", "", "fingerprint of a key whose recordings are replayed although you do not trust it")
	jsonFlag(cmd, &flags.json)
	return cmd
}

// recordedTest is what came of one recording.
type recordedTest struct {
	Name    string         `json:"name"` // path below .ai/tests, without its ending
	Verdict string         `json:"verdict"`
	Why     string         `json:"why,omitempty"`
	Updated bool           `json:"updated,omitempty"`
	Threads []threadReplay `json:"threads"`
}

func testCommand(ctx context.Context, sys System, opts options, patterns []string, flags testFlags) error {
	p, err := openNamed(ctx, sys, opts)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }()
	names, err := recordingsBelow(p.path, patterns)
	if err != nil {
		return err
	}
	r := newReplayer(sys, p)
	results := []recordedTest{}
	for _, name := range names {
		result, err := r.test(ctx, name, flags)
		if err != nil {
			return err
		}
		results = append(results, result)
		if !flags.json {
			if err := writeTest(sys, result); err != nil {
				return err
			}
		}
	}
	if flags.junit != "" {
		if err := writeJUnit(flags.junit, results); err != nil {
			return err
		}
	}
	return concludeTests(sys, results, flags.json)
}

// recordingsBelow are the names of the recordings of a project, sorted. Links are not
// followed.
func recordingsBelow(project string, patterns []string) ([]string, error) {
	root := filepath.Join(project, filepath.FromSlash(testsFolder))
	var names []string
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !strings.HasSuffix(file, recording.Extension) {
			return err
		}
		rel, err := filepath.Rel(root, file)
		name := strings.TrimSuffix(filepath.ToSlash(rel), recording.Extension)
		if err == nil && wanted(name, patterns) {
			names = append(names, name)
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	if len(names) == 0 && len(patterns) > 0 {
		return nil, &usageError{message: fmt.Sprintf("no recording below %s is called %s", testsFolder, strings.Join(patterns, " or ")), try: "rye-mcp test"}
	}
	if len(names) == 0 {
		return nil, tool.Faultf(tool.CodeNotFound, "there are no recordings below %s", testsFolder).
			WithTry("rye-mcp threads export latest --out %s/NAME%s", testsFolder, recording.Extension)
	}
	slices.Sort(names)
	return names, nil
}

// wanted reports whether a name is one of those that were asked for.
func wanted(name string, patterns []string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(pattern string) bool {
		pattern = strings.TrimSuffix(strings.TrimPrefix(pattern, testsFolder+"/"), recording.Extension)
		if matched, err := path.Match(pattern, name); err == nil && matched {
			return true
		}
		return !strings.ContainsAny(pattern, "*?[") && strings.Contains(name, pattern)
	})
}

// test replays one recording.
func (r *replayer) test(ctx context.Context, name string, flags testFlags) (recordedTest, error) {
	result := recordedTest{Name: name, Verdict: verdictCannot, Threads: []threadReplay{}}
	file := filepath.Join(r.project.path, filepath.FromSlash(testsFolder), filepath.FromSlash(name)+recording.Extension)
	rec, err := openRecording(r.project, file, flags.trust)
	if err != nil {
		f := tool.AsFault(err)
		result.Why = f.Message
		if try := advice(f); try != "" {
			result.Why += "; try: " + try
		}
		return result, ctx.Err()
	}
	recorded, err := rec.Threads()
	if err != nil {
		return result, err
	}
	update := flags.update
	for _, t := range recorded {
		report, now, err := r.one(ctx, rec, t, "")
		if err != nil {
			return result, err
		}
		result.Threads = append(result.Threads, report)
		if update = update && now != nil; update {
			if err := rec.Expect(t, *now); err != nil {
				return result, err
			}
		}
	}
	if result.Verdict = worst(result.Threads); update && result.Verdict == verdictDiffers {
		result.Updated = true
		data, err := signedRecording(r.project, rec)
		if err == nil {
			err = writeWhole(file, data, 0o644)
		}
		return result, err
	}
	return result, nil
}

func writeTest(sys System, t recordedTest) error {
	verdict := padded(t.Verdict)
	if t.Updated {
		verdict = "updated"
	}
	line := fmt.Sprintf("%s %s", verdict, t.Name)
	if t.Why != "" {
		line += ": " + t.Why
	}
	if _, err := fmt.Fprintln(sys.Stdout, plain.Line(line)); err != nil {
		return err
	}
	for _, report := range t.Threads {
		if report.Verdict == verdictSame && report.Note == "" { // all of it is
			continue
		}
		for text := range strings.Lines(plain.Lines(report.text())) {
			if _, err := fmt.Fprint(sys.Stdout, "  ", text); err != nil {
				return err
			}
		}
	}
	return nil
}

// concludeTests ends the command with what came of all recordings.
func concludeTests(sys System, results []recordedTest, asJSON bool) error {
	count := map[string]int{}
	for _, t := range results {
		verdict := t.Verdict
		if t.Updated {
			verdict = verdictSame
		}
		count[verdict]++
	}
	if asJSON {
		if err := writeJSON(sys.Stdout, map[string]any{"success": count[verdictSame] == len(results), "tests": results}); err != nil {
			return err
		}
	} else if _, err := fmt.Fprintf(sys.Stdout, "%s: %d same, %d different, %d cannot be replayed\n",
		counted(len(results), "recording"), count[verdictSame], count[verdictDiffers], count[verdictCannot]); err != nil {
		return err
	}
	switch {
	case count[verdictDiffers] > 0:
		return exitOf(verdictDiffers)
	case count[verdictCannot] > 0:
		return exitOf(verdictCannot)
	}
	return nil
}

// The form that test reports of JUnit have, as its Ant task writes them.
type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string     `xml:"name,attr"`
		Class   string     `xml:"classname,attr"`
		Failure *junitText `xml:"failure"`
		Error   *junitText `xml:"error"`
	}
	junitText struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

func writeJUnit(file string, results []recordedTest) error {
	suite := junitSuite{Name: "rye-mcp test", Tests: len(results)}
	for _, t := range results {
		c := junitCase{Name: path.Base(t.Name), Class: path.Dir(t.Name)}
		text := junitText{Message: t.Why}
		for _, report := range t.Threads {
			if report.Verdict != verdictSame {
				text.Text += plain.Lines(report.text())
			}
		}
		switch {
		case t.Verdict == verdictCannot:
			suite.Errors++
			c.Error = &text
		case t.Verdict == verdictDiffers && !t.Updated:
			suite.Failures++
			text.Message = "differs from what is recorded"
			c.Failure = &text
		}
		suite.Cases = append(suite.Cases, c)
	}
	data, err := xml.MarshalIndent(suite, "", "  ")
	if err != nil {
		return err
	}
	return outFile{name: file, perm: 0o644, example: "report.xml", renews: "<testsuite"}.write(append([]byte(xml.Header), append(data, '\n')...))
}

package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/replay"
	"github.com/rye-mcp/rye-mcp/runtime/recording"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

func newThreadsExportCommand(sys System, opts *options) *cobra.Command {
	var (
		out   = outFile{perm: 0o644, example: "NAME" + recording.Extension}
		scope replay.Scope
	)
	cmd := &cobra.Command{
		Use:   "export ID --out FILE",
		Short: "Write a thread as one signed file that can be replayed and imported",
		Long: `Write what a thread was started with, what was said, what its tools gave and the
items that it was made of as one file, signed with your key. It is a zip archive:
"rye-mcp replay FILE" runs it again without a model, and "rye-mcp threads import FILE"
takes it into another project.

Only a thread that verifies is written. One that still runs is written up to its last
checkpoint; such a file can be replayed and not imported. The same thread gives the
same bytes.

A file that has other bytes is replaced with --overwrite alone. A recording that you
want to hold what a directive does today is brought up to date by "rye-mcp test
--update".

Values of key variables and what looks like a key are taken out, and the folders of
project and home are written as {project} and ~. Look into the file before you give
it away all the same: nobody can know what else is a secret.`,
		Example: `  rye-mcp threads export latest --out .ai/tests/review/small.ryetest
  rye-mcp threads export review-1763 --chain --tree --out review.ryetest`,
		Args:              usageArgs(cobra.ExactArgs(1)),
		ValidArgsFunction: completer{sys: sys, opts: opts}.anyThread,
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			if out.name == "" {
				return &usageError{message: "name the file with --out", try: "rye-mcp threads export " + args[0] + " --out .ai/tests/NAME" + recording.Extension}
			}
			if err := out.check(); err != nil {
				return err
			}
			return withThread(cmd.Context(), sys, *opts, args[0], func(ctx context.Context, p *project, id thread.ID) error {
				return exportThread(ctx, sys, p, id, scope, out)
			})
		}),
	}
	cmd.Flags().StringVarP(&out.name, "out", "o", "", "file to write; its folder is made")
	out.overwriteFlag(cmd)
	cmd.Flags().BoolVar(&scope.Chain, "chain", false, "with the threads that it continues, and that continue it")
	cmd.Flags().BoolVar(&scope.Tree, "tree", false, "with all threads below")
	return cmd
}

func exportThread(ctx context.Context, sys System, p *project, id thread.ID, scope replay.Scope, out outFile) error {
	r, err := recorderOf(sys, p).Record(ctx, id, scope)
	if err != nil {
		return err
	}
	data, err := signedRecording(p, r)
	if err == nil {
		err = out.write(data)
	}
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(r.Taken())) {
		_, _ = fmt.Fprintf(sys.Stderr, "%s taken out of %s\n", counted(r.Taken()[name], "secret"), name)
	}
	_, err = fmt.Fprintf(sys.Stdout, "%s written to %s\n", counted(len(r.Manifest.Threads), "thread"), plain.Line(out.name))
	return err
}

// signedRecording is the file of a recording, signed by the user.
func signedRecording(p *project, r *recording.Recording) ([]byte, error) {
	key, err := p.itemKey()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = r.Write(&b, key)
	return b.Bytes(), err
}

// recorderOf makes recordings of the threads of a project.
func recorderOf(sys System, p *project) *replay.Recorder {
	return &replay.Recorder{
		Threads: p.control.Threads, Verify: p.control.Verify, Resolver: p.resolver, Settings: p.control.Settings,
		Getenv: sys.Getenv, Paths: shortPaths(sys, p),
	}
}

// shortPaths are the folders that are this machine's own affair.
func shortPaths(sys System, p *project) []recording.Path {
	paths := []recording.Path{{Folder: p.path, As: "{project}"}}
	add := func(folder string, err error) {
		if err == nil && folder != "" && folder != "/" {
			paths = append(paths, recording.Path{Folder: filepath.Clean(folder), As: "~"})
		}
	}
	add(sys.HomeDir())
	add(userSpace(sys))
	slices.SortStableFunc(paths, func(a, b recording.Path) int { return cmp.Compare(len(b.Folder), len(a.Folder)) })
	return paths
}

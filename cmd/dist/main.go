// Command dist makes what is published of rye-mcp: for each platform a stripped
// binary in an archive with its SBOM (CycloneDX), for each system a bundle that
// Claude Desktop and others install (MCPB), server.json for the MCP registry, and
// SHA256SUMS. The version is that of the tag or commit that is checked out.
//
//	go run ./cmd/dist [-out dist] [-platforms linux/amd64,darwin/arm64]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// everywhere is what is published. Binaries of darwin are cross-built and have
// not been run by us.
const everywhere = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64"

func main() {
	out := flag.String("out", "dist", "the `folder` to write to; what is in it is kept")
	platforms := flag.String("platforms", everywhere, "`OS/ARCH`, separated by commas")
	flag.Parse()
	if err := run(context.Background(), *out, strings.Split(*platforms, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// run builds everything and prints what it wrote.
func run(ctx context.Context, out string, platforms []string) error {
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "rye-dist-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()

	builds, err := buildAll(ctx, work, platforms)
	if err != nil {
		return err
	}
	files, err := writeAll(out, builds)
	if err != nil {
		return err
	}
	for _, f := range files {
		fmt.Printf("%6.1f MB  %s\n", float64(f.size)/1e6, filepath.Join(out, f.name))
	}
	return nil
}

// writeAll writes archives, bundles, server.json and, of all of them, SHA256SUMS.
func writeAll(out string, builds []build) ([]file, error) {
	var files []file
	add := func(name string, data []byte, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		f, err := write(out, name, data)
		files = append(files, f)
		return err
	}
	version := builds[0].version
	for _, b := range builds {
		if b.version != version {
			return nil, fmt.Errorf("the checkout changed during the build: %s, then %s", version, b.version)
		}
		data, err := archive(b)
		if err := add(b.name()+".tar.gz", data, err); err != nil {
			return nil, err
		}
	}
	bundles, err := bundlesOf(builds)
	if err != nil {
		return nil, err
	}
	var published []file
	for _, b := range bundles {
		data, err := b.zip()
		if err := add(b.name(), data, err); err != nil {
			return nil, err
		}
		published = append(published, files[len(files)-1])
	}
	data, err := registryEntry(version, published)
	if err := add("server.json", data, err); err != nil {
		return nil, err
	}
	err = add("SHA256SUMS", sums(files), nil)
	return files, err
}

var errNoVersion = errors.New("no version: build in a checkout of git (not a linked worktree, which the go command does not see), with git installed")

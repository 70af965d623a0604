package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
)

const program = "./cmd/rye-mcp"

// build is the program for one platform.
type build struct {
	os, arch string
	path     string // of the binary
	version  string // a tag such as v1.2.3, or a pseudo-version of the commit
	info     *debug.BuildInfo
}

// name is what an archive of the build is called, without its ending.
func (b build) name() string { return fmt.Sprintf("rye-mcp_%s_%s_%s", b.version, b.os, b.arch) }

func buildAll(ctx context.Context, work string, platforms []string) ([]build, error) {
	builds := make([]build, 0, len(platforms))
	for _, platform := range platforms {
		goos, goarch, ok := strings.Cut(platform, "/")
		if !ok || goos == "windows" {
			return nil, fmt.Errorf("platform %q: want one of %s", platform, everywhere)
		}
		b, err := compile(ctx, filepath.Join(work, goos+"_"+goarch, "rye-mcp"), goos, goarch)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", platform, err)
		}
		builds = append(builds, b)
	}
	return builds, nil
}

// compile builds the program without symbols and without paths of this machine;
// the go command stamps the version of the checkout into it. Without cgo the
// binary needs no C library of its system.
func compile(ctx context.Context, path, goos, goarch string) (build, error) {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", path, program)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return build{}, err
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return build{}, err
	}
	if info.Main.Version == "" || info.Main.Version == "(devel)" {
		return build{}, errNoVersion
	}
	if err := checkMethods(path); err != nil {
		return build{}, err
	}
	return build{goos, goarch, path, info.Main.Version, info}, nil
}

// keepsMethods is a function that finds methods by names it computes. With it in
// the program the linker keeps every exported method of every type, and the
// binary is a fifth larger.
const keepsMethods = "text/template.(*state).evalField"

func checkMethods(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if bytes.Contains(content, []byte(keepsMethods)) {
		return fmt.Errorf("%s is linked, so all methods are: something executes templates of text/template", keepsMethods)
	}
	return nil
}

package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionJSON is what version writes with --json.
type versionJSON struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func newVersionCommand(sys System) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  usageArgs(cobra.NoArgs),
		RunE: shows(func(*cobra.Command, []string) error {
			return writeVersion(sys, asJSON)
		}),
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func writeVersion(sys System, asJSON bool) error {
	v := versionJSON{Version: version(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if asJSON {
		return writeJSON(sys.Stdout, v)
	}
	_, err := fmt.Fprintf(sys.Stdout, "rye-mcp %s (%s, %s/%s)\n", v.Version, v.Go, v.OS, v.Arch)
	return err
}

// version is the module version, or the commit this binary was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "unknown"
	}
	return info.Main.Version
}

package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// tryAfter is what to try after an error that does not say it itself, by its kind; else the
// help of the command.
func tryAfter(cmd *cobra.Command, err error) string {
	help := cmd.CommandPath() + " --help"
	var (
		path     *fs.PathError
		limits   *limit.UnknownError
		provider *config.NotFoundError
		settings *config.Error
	)
	switch {
	case errors.As(err, &path) && errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("another path; ls %s shows what there is", existing(path.Path))
	case errors.Is(err, syscall.EISDIR):
		return "the path of a file"
	case errors.As(err, &limits) && len(limits.Names) > 0:
		return fmt.Sprintf("--limit %s=N", cmp.Or(tool.Nearest(limits.Names[0], item.LimitNames()), "turns"))
	case errors.As(err, &provider):
		return strings.TrimSpace("rye-mcp models " + prefixed("--provider ", tool.Nearest(provider.Provider, provider.Known)))
	case errors.As(err, &settings):
		return "rye-mcp config show tells the values that hold, and where each comes from"
	case errors.As(err, new(*json.SyntaxError)):
		return help + "; what is read is JSON"
	}
	return help
}

// existing is the nearest folder above a path that there is.
func existing(path string) string {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() || dir == filepath.Dir(dir) {
			return dir
		}
	}
}

// prefixed is a text behind a prefix, where there is one.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// Where the words of an error about flags, or of help, name one.
var (
	flagInHelp  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z][a-z-]*)`) })
	flagInError = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`--([a-zA-Z][\w-]*)`) })
	negative    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^unknown shorthand flag: '\d' in (-[\d.]+)$`) })
)

// flagError makes a usage error of what cobra refuses about flags.
func flagError(cmd *cobra.Command, err error) error {
	return &usageError{message: err.Error(), try: tryFlag(cmd, err.Error())}
}

// tryFlag is the flag that was meant, what a known one takes, or how a value is given that
// begins like a flag.
func tryFlag(cmd *cobra.Command, message string) string {
	help := cmd.CommandPath() + " --help"
	if number := negative().FindStringSubmatch(message); number != nil {
		return fmt.Sprintf("-- before it: %s -- … %s", cmd.CommandPath(), number[1])
	}
	found := flagInError().FindAllStringSubmatch(message, -1)
	if found == nil {
		return help
	}
	name := found[len(found)-1][1]
	if known := cmd.Flag(name); known != nil {
		takes := strings.ToUpper(known.Value.Type())
		if parts := strings.Split(known.Usage, "`"); len(parts) == 3 { // as help names it
			takes = parts[1]
		}
		return fmt.Sprintf("--%s %s: %s", name, takes, strings.ReplaceAll(known.Usage, "`", ""))
	}
	var names []string
	for _, line := range flagInHelp().FindAllStringSubmatch(cmd.Flags().FlagUsages(), -1) {
		names = append(names, line[1])
	}
	if near := tool.Nearest(name, names); near != "" {
		return cmd.CommandPath() + " --" + near
	}
	return help
}

// tryArguments is how a command is called that was given too many arguments, or too few: as
// its first example has it.
func tryArguments(cmd *cobra.Command) string {
	example, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n")
	example, _, _ = strings.Cut(example, " #")
	takes := takenBy(cmd)
	switch {
	case takes == noArguments:
		return cmd.CommandPath()
	case strings.HasPrefix(example, cmd.CommandPath()+" "):
		return strings.TrimSpace(example)
	case strings.HasPrefix(takes, "ID"):
		return cmd.CommandPath() + " latest; rye-mcp threads list shows the ids"
	}
	return cmd.CommandPath() + " --help"
}

package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// The help on exit codes names every command.
func TestExitCodesNameEveryCommand(t *testing.T) {
	t.Parallel()
	root := newRoot(System{})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	said := newExitCodesTopic().Long
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Hidden || cmd.IsAdditionalHelpTopicCommand() {
			return
		}
		alike := cmd.Name() == "completion" || cmd.Name() == "call" // all below it have its exit codes
		if cmd.HasSubCommands() && !alike {
			for _, sub := range cmd.Commands() {
				walk(sub)
			}
			return
		}
		name := strings.TrimPrefix(cmd.CommandPath(), root.Name()+" ")
		if !strings.Contains(said, name) {
			t.Errorf("%s is not named", name)
		}
	}
	walk(root)
}

package cli

import "github.com/spf13/cobra"

// Exit codes. Programs rely on them: codes are added, never changed.
const (
	exitOK        = 0
	exitFailure   = 1   // the command failed, or a thread it is about did
	exitUsage     = 2   // the command line makes no sense
	exitTimeout   = 3   // a wait is over, and what it waited for has not ended
	exitCancelled = 130 // interrupted, as shells report SIGINT
)

// newExitCodesTopic is "rye-mcp help exit-codes".
func newExitCodesTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What the exit codes mean",
		Long: `Exit codes of all commands:

  0    success
  1    failure: the command failed, a thread it ran or waited for did not
       complete, a thread could not be stopped, doctor or reconcile found
       something that is wrong, or something does not verify
  2    the command line makes no sense
  3    threads wait: the time is up, and what was waited for has not ended
  130  interrupted by Ctrl-C, SIGTERM or the end of the terminal; for run, the
       thread was cancelled

What went wrong is said on standard error as "Error:", and what to do about it
as "Try:". An output that nobody reads any more ("| head") is no failure, save
that of run, which then cancels the thread.`,
	}
}

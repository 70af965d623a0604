package cli

import "github.com/spf13/cobra"

// Exit codes. Programs rely on them: codes are added, never changed.
const (
	exitOK      = 0
	exitFailure = 1 // the command failed, or a thread it is about did
	exitUsage   = 2 // the command line makes no sense
	// exitCannotReplay: a recorded thread cannot be replayed.
	exitCannotReplay = 2
	exitTimeout      = 3   // a wait is over, and what it waited for has not ended
	exitCancelled    = 130 // interrupted, as shells report SIGINT
)

// newExitCodesTopic is "rye-mcp help exit-codes". It names every command.
func newExitCodesTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What the exit codes mean",
		Long: `Exit codes of all commands:

  0    success
  1    failure: the command could not do its work, or
         run                a thread that did not complete
         threads map        one of the items did not complete
         threads wait       one of the threads did not complete
         threads resume     the new thread did not complete
         threads fork       the copy was to go on and did not complete
         threads cancel     a thread could not be stopped
         threads kill       a thread could not be stopped
         threads apply      nothing was applied: the work conflicts with the project
         threads delete     a thread was not deleted
         threads cleanup    something that was to go could not be removed
         threads reconcile  something disagrees
         doctor             a check fails
         store check        a check fails
         worker             it cannot begin, or has lost its lease
         store migrate      nothing was moved, or not all of it
         install            the server does not start, or a file is left as it is
         config show        a file has an error
         validate           there is an error
         sign               an item could not be signed
         export claude      an agent was left as it is
         threads verify     something does not verify
         threads receipt    the thread does not verify, or has not ended
         threads export     the thread does not verify
         threads import     the file was refused, and nothing was written
         replay, test       something differs from what is recorded
         langgraph sync     something differs there, or stays due
         langgraph fork     the new thread did not complete
  2    the command line makes no sense, or
         threads watch      with --once: there was something to tell
         replay, test       a recorded thread cannot be replayed
  3    threads wait, threads map: the time is up, and what was waited for has not
         ended
  130  interrupted by Ctrl-C, SIGTERM or the end of the terminal; for run,
       threads resume and threads fork, the thread was cancelled

The others have 0, 1, 2 and 130 only: init, demo, models, version, completion, help,
top, threads list, threads show, threads rename, threads meta, threads tail,
threads chain, threads approve, threads handoff, threads steer, threads diff,
threads vacuum, threads cost, threads health, threads call, trust, config set,
config edit, keys generate, metrics dashboard, keys list, keys show, keys trust,
hooks explain, items list, items show, items search, items copy, items new,
memory list, memory show, memory add, memory edit, memory keep, memory forget,
memory export, memory import, memory eval, store status, workers list,
langgraph init, mcp add, mcp list, mcp discover and mcp import.
A server, which is serve, ui or --stdio, threads watch and top where it writes lines
end with 0 when they are interrupted, --stdio at the end of its input.

Standard error says what went wrong as "Error:", and what to do about it as
"Try:". An output that nobody reads any more ("| head") is no failure, save
that of run, threads resume and threads fork, which then cancel the thread.`,
	}
}

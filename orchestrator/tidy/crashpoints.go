package tidy

import "github.com/rye-mcp/rye-mcp/runtime/thread"

// The crash points of a deletion.
const (
	CrashIntended   thread.Crashpoint = "tidy.intended"   // the rows are gone; the next process goes on
	CrashLedger     thread.Crashpoint = "tidy.ledger"     // the budgets are folded into those above them
	CrashRemembered thread.Crashpoint = "tidy.remembered" // all that outlives the databases is written
	CrashBelongings thread.Crashpoint = "tidy.belongings" // something that another room keeps for a thread is gone
	CrashKnowledge  thread.Crashpoint = "tidy.knowledge"  // its knowledge entries are gone
	CrashFolder     thread.Crashpoint = "tidy.folder"     // its folder is gone
	CrashForgotten  thread.Crashpoint = "tidy.forgotten"  // the search index knows nothing of a batch
	CrashEnded      thread.Crashpoint = "tidy.ended"      // the store says that nothing is left of it
)

// Crashpoints lists the crash points of a deletion, in order.
func Crashpoints() []thread.Crashpoint {
	return []thread.Crashpoint{
		CrashIntended, CrashLedger, CrashRemembered, CrashBelongings, CrashKnowledge, CrashFolder, CrashForgotten, CrashEnded,
	}
}

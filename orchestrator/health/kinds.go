package health

import (
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Kinds of finding, by what disagrees.
const (
	findProcess        = "process_missing"            // the row of a thread that has not ended, and the life of its run
	findDeletion       = "deletion_unfinished"        // the threads that were deleted, and what is left of them
	findDeleted        = "deleted_back"               // a folder, and the threads that were deleted
	findRowMissing     = "row_missing"                // a folder of five minutes or more, and the rows
	findMetaCopied     = "meta_copied"                // the thread that thread.json names, and its folder
	findMetaForeign    = "meta_foreign"               // the signer and the project of thread.json, and those of here
	findMetaUnreadable = "meta_unreadable"            // thread.json, and its signature
	findMetaMissing    = "meta_missing"               // a transcript or a row that had thread.json, and the folder
	findTranscript     = "transcript_damaged"         // the transcript, and what thread.json says of it
	findRowBehind      = "row_behind"                 // a row that has not begun, and a signed transcript that has ended
	findRowEdited      = "row_edited"                 // a row that has ended, and the signed thread.json and transcript
	findMetaDisagrees  = "meta_disagrees"             // the same, where these two do not vouch for one end
	findMetaBehind     = "meta_behind"                // a row that has ended, and thread.json
	findFolderMissing  = "folder_missing"             // a row, and the folders
	findFolderBack     = "folder_back"                // the note that records are gone, and the folder
	findFolderLinked   = "folder_linked"              // a symbolic link in the place of a folder
	findParent         = "parent_missing"             // the parent that a row names, and the rows
	findParentDiffers  = "parent_differs"             // the parent that a row names, and the one in the signed thread.json
	findChain          = "chain_broken"               // both ends of a hand-over or resumption, and what is signed
	findReservation    = "reservation_without_thread" // active budgets, and the rows
	findBudgetMissing  = "budget_missing"             // the row of a thread that began, and the ledger
	findBudgetDiffers  = "budget_differs"             // what a thread itself has spent, in the ledger and in the signed thread.json
	findTotals         = "totals_wrong"               // the running totals of the ledger, and the budgets below them
	findRendering      = "rendering_stale"            // the knowledge entry of a thread that has ended, and its row
	findDraft          = "draft_left"                 // drafts of knowledge entries, an hour old
	findArtifact       = "artifact_orphan"            // the artifacts of a thread that has ended, and its transcript (with all)
	findLock           = "lock_stale"                 // locks and folders without a thread, and their holders
)

// Kind is one way in which registry, ledger, folders and renderings can disagree.
type Kind struct {
	Name   string
	Mend   string // what apply does; empty: it does nothing
	Advice string // where apply does nothing: why, and what to do
}

// Kinds lists every kind, in the order in which apply mends: a kind that others are
// held against comes first. The search index is not among them: each search compares it with
// the files.
func Kinds() []Kind {
	return []Kind{
		{findProcess, "", "a dead thread is settled by every look, and this one could not be; put right what the detail says, then get_status of the thread"},
		{findDeletion, "goes on with the deletion", ""},
		{findDeleted, "", "a deleted thread does not come back; remove the folder, or bring the thread back from an archive with rye-mcp threads import"},
		{findRowMissing, "makes the row and the budget again from the signed files; a thread that had not begun is not started",
			"end the process that holds the folder, or remove the folder when nobody needs it"},
		{findMetaCopied, "", "a copy is not believed; put back the file as it was, or remove the copy"},
		{findMetaForeign, "", "files of another user or project are not believed; remove the folder, or take over a whole state folder (rye/guides/health)"},
		{findMetaUnreadable, "", "a changed file is not signed again, and the thread starts no children without it; put back the file as it was; " +
			"a folder without a row can be removed"},
		{findMetaMissing, "", "the row does not know what was in thread.json; put back the file as it was, or delete_thread"},
		{findTranscript, "", "a transcript that was cut off or changed is not made up; rye-mcp threads verify tells more; put back the file as it was"},
		{findRowBehind, "ends the row as the transcript says", ""},
		{findRowEdited, "brings the row to what is signed", ""},
		{findMetaDisagrees, "", "one of the two is wrong, and neither proves which; rye-mcp threads verify tells more; put back the file as it was"},
		{findMetaBehind, "repeats the last steps of the end", ""},
		{findFolderMissing, "writes the end of a thread that never ran; notes at any other that its records are gone",
			"a removed folder does not come back by itself; put back a copy, or keep result and cost, which are in the row"},
		{findFolderBack, "takes the note away", ""},
		{findFolderLinked, "", "links are not followed; remove the link, and put the folder in its place"},
		{findParent, "brings the row to what is signed, or makes the thread one without a parent", ""},
		{findParentDiffers, "brings the row to what is signed", ""},
		{findChain, "brings the links to what is signed; drops one to a thread without a row",
			"by what is signed no thread continues it; resume_thread or fork_thread goes on with what it had said"},
		{findReservation, "settles the budget, which its parent has back", ""},
		{findBudgetMissing, "makes the budget again from the signed thread.json", "no signed file says how much it had; its cost is in the row"},
		{findBudgetDiffers, "brings the ledger to what is signed", "neither row nor thread.json can be believed; rye-mcp threads verify tells more"},
		{findTotals, "adds them up anew", ""},
		{findRendering, "writes it anew", ""},
		{findDraft, "removes them", ""},
		{findArtifact, "removes those that the transcript does not name", ""},
		{findLock, "removes them where nobody holds them", "put right what the detail says"},
	}
}

// kindOf is the kind of that name, and its place in the order.
func kindOf(name string) (k Kind, rank int) {
	all := Kinds()
	rank = slices.IndexFunc(all, func(k Kind) bool { return k.Name == name })
	return all[rank], rank
}

// Crashpoints lists the crash points of mending: each kind is mended in one step, behind
// which its point is; a row that is behind needs two.
func Crashpoints() []thread.Crashpoint {
	points := []thread.Crashpoint{crashReplaced}
	for _, k := range Kinds() {
		if k.Mend != "" {
			points = append(points, crashMended(k.Name))
		}
	}
	return points
}

// crashReplaced: a row that is behind has the run of who mends it.
const crashReplaced thread.Crashpoint = "reconcile.replaced"

func crashMended(kind string) thread.Crashpoint { return thread.Crashpoint("reconcile." + kind) }

package health

import (
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Kinds of finding.
const (
	findProcess        = "process_missing"
	findRowMissing     = "row_missing"
	findRowBehind      = "row_behind"
	findRowEdited      = "row_edited"
	findFolderMissing  = "folder_missing"
	findFolderBack     = "folder_back"
	findFolderLinked   = "folder_linked"
	findMetaMissing    = "meta_missing"
	findMetaUnreadable = "meta_unreadable"
	findMetaForeign    = "meta_foreign"
	findMetaCopied     = "meta_copied"
	findMetaBehind     = "meta_behind"
	findMetaDisagrees  = "meta_disagrees"
	findTranscript     = "transcript_damaged"
	findParent         = "parent_missing"
	findParentDiffers  = "parent_differs"
	findChain          = "chain_broken"
	findReservation    = "reservation_without_thread"
	findBudgetMissing  = "budget_missing"
	findBudgetDiffers  = "budget_differs"
	findTotals         = "totals_wrong"
	findRendering      = "rendering_stale"
	findDraft          = "draft_left"
	findArtifact       = "artifact_orphan"
	findDeletion       = "deletion_unfinished"
	findDeleted        = "deleted_back"
	findLock           = "lock_stale"
)

// Kind is one way in which registry, ledger, folders and renderings can disagree.
type Kind struct {
	Name     string
	Compared string // what is held against what
	Mend     string // what apply does; empty: it does nothing
	Advice   string // what to do where apply does nothing, and why it does not
}

// Kinds lists every kind, in the order in which apply mends: what others are held
// against comes first. The search index is not among them: each search compares it with
// the files.
func Kinds() []Kind {
	return []Kind{
		{findProcess, "the row of a thread that has not ended, and who has its life", "",
			"every look settles a dead thread; put right what the detail says, then get_status of the thread"},
		{findDeletion, "threads that were deleted, and what is left of them", "goes on with the deletion", ""},
		{findDeleted, "a folder, and the threads that were deleted", "",
			"a deleted thread does not come back by itself; remove the folder, or rye-mcp threads import an archive of it"},
		{findRowMissing, "a folder of five minutes or more, and the rows", "makes the row and the budget again from the signed files; what had not begun is not started",
			"remove the folder when nobody needs it, or end the process that holds it"},
		{findMetaCopied, "the thread that thread.json names, and its folder", "",
			"nothing of a copy is believed; put back the file as it was, or remove the copy"},
		{findMetaForeign, "who signed thread.json, and for which project", "",
			"nothing of another user or project is believed; a person can take over a whole state folder (rye/guides/health); else remove this one"},
		{findMetaUnreadable, "thread.json, and its signature", "",
			"nobody signs again what was changed; put back the file as it was; without it the thread can start no children; a folder without a row can be removed"},
		{findMetaMissing, "a transcript or a row that had thread.json, and the folder", "",
			"the row does not know what is in it; put back the file as it was, or delete_thread"},
		{findTranscript, "the transcript, and what thread.json says of it", "",
			"nothing makes up what was cut off; put back the file as it was; rye-mcp threads verify tells more"},
		{findRowBehind, "a row that has not begun, and a signed transcript that has ended", "ends the row as the transcript says", ""},
		{findRowEdited, "kind, directive, state, outcome and cost in a row that has ended, and in the signed thread.json and transcript",
			"brings the row to what is signed", ""},
		{findMetaDisagrees, "the same, where thread.json and transcript do not vouch for one end", "",
			"it cannot be told which of the two is right; rye-mcp threads verify tells more"},
		{findMetaBehind, "a row that has ended, and thread.json", "repeats the last steps of the end", ""},
		{findFolderMissing, "the row of a thread, and its folder", "writes the end of one that never ran; notes at any other that its records are gone",
			"nothing brings back a removed folder; result and cost are in the row"},
		{findFolderBack, "the note that records are gone, and the folder", "takes the note away", ""},
		{findFolderLinked, "a symbolic link in the place of a folder", "", "links are not followed; remove the link, and put the folder in its place"},
		{findParent, "the parent that a row names, and the rows", "brings the row to what is signed, or makes the thread one without a parent", ""},
		{findParentDiffers, "the parent that a row names, and the one in the signed thread.json", "brings the row to what is signed", ""},
		{findChain, "both ends of a hand-over or resumption, and what is signed", "brings the links to what is signed; drops one to a thread without a row",
			"nobody continues it by what is signed; resume_thread or fork_thread goes on with what it had said"},
		{findReservation, "active budgets, and the rows", "settles the budget, which its parent has back", ""},
		{findBudgetMissing, "the row of a thread that began, and the ledger", "makes the budget again from the signed thread.json",
			"nothing signed says how much it had; its cost is in the row"},
		{findBudgetDiffers, "what a thread itself has spent by the ledger, and by the signed thread.json", "brings the ledger to what is signed",
			"neither row nor thread.json can be believed; rye-mcp threads verify tells more"},
		{findTotals, "the running totals of the ledger, and the budgets below them", "adds them up anew", ""},
		{findRendering, "the knowledge entry of a thread that has ended, and its row", "writes it anew", ""},
		{findDraft, "drafts of knowledge entries, an hour old", "removes them", ""},
		{findArtifact, "the artifacts of a thread that has ended, and its transcript (with all)", "removes those that nothing there names", ""},
		{findLock, "locks and folders without a thread, and who holds them", "removes them where nobody does",
			"put right what the detail says"},
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

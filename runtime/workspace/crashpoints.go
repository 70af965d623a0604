package workspace

import "github.com/rye-mcp/rye-mcp/runtime/thread"

// The crash points of making a workspace, in order.
const (
	CrashMakeParts    thread.Crashpoint = "workspace.parts"    // the folders are there
	CrashMakeBaseline thread.Crashpoint = "workspace.baseline" // the files are recorded
	CrashMakeFiles    thread.Crashpoint = "workspace.files"    // they are written; nothing says what they are
)

// The crash points of what travels of one: packed where its thread is started, made where
// that runs, packed as it was left, and made again where somebody looks.
const (
	CrashPackParts       thread.Crashpoint = "pack.parts"       // the folders are there
	CrashPackBaseline    thread.Crashpoint = "pack.baseline"    // the files are recorded
	CrashPackBundle      thread.Crashpoint = "pack.bundle"      // they are packed; nobody has them
	CrashReceiveParts    thread.Crashpoint = "receive.parts"    // the folders are there
	CrashReceiveUnpacked thread.Crashpoint = "receive.unpacked" // the objects are there
	CrashReceiveFiles    thread.Crashpoint = "receive.files"    // the files are written; nothing says what they are
	CrashPackResult      thread.Crashpoint = "pack.result"      // the files are packed; the workspace does not say so
)

// The crash points of applying one, in order.
const (
	CrashApplyIntended thread.Crashpoint = "apply.intended" // the journal says what is to be written
	CrashApplyDrafted  thread.Crashpoint = "apply.drafted"  // a file is written beside the one that it replaces
	CrashApplyReady    thread.Crashpoint = "apply.ready"    // all are, and the journal says so
	CrashApplyPlaced   thread.Crashpoint = "apply.placed"   // a file is in its place
	CrashApplyRecorded thread.Crashpoint = "apply.recorded" // the workspace says that it was applied
	CrashApplySwept    thread.Crashpoint = "apply.swept"    // nothing stands beside the files any more
)

// Crashpoints lists the crash points, in order. Those about one file come several times.
func Crashpoints() []thread.Crashpoint {
	return []thread.Crashpoint{
		CrashMakeParts, CrashMakeBaseline, CrashMakeFiles,
		CrashPackParts, CrashPackBaseline, CrashPackBundle, CrashReceiveParts, CrashReceiveUnpacked, CrashReceiveFiles, CrashPackResult,
		CrashApplyIntended, CrashApplyDrafted, CrashApplyReady, CrashApplyPlaced, CrashApplyRecorded, CrashApplySwept,
	}
}

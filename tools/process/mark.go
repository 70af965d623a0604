package process

// Variables that name, in the environment of a thread's process and of what its
// tools start, the thread that a thread started from there is a child of.
const (
	ParentVariable        = "RYE_PARENT_THREAD_ID"
	ParentProjectVariable = "RYE_PARENT_PROJECT" // ids are unique within a project
)

// TraceVariable names, in the environment of what a tool starts, the request
// that all this goes back to, for whoever logs.
const TraceVariable = "RYE_TRACE_ID"

// Mark returns the entries of an environment by which the processes of a thread
// are known, see [KillLeftovers]. Project is the thread's, as its process knows
// it.
func Mark(project, threadID string) []string {
	return []string{ParentVariable + "=" + threadID, ParentProjectVariable + "=" + project}
}

package control

import "github.com/rye-mcp/rye-mcp/runtime/thread"

// HealthRequest asks how the threads of a project are.
type HealthRequest struct {
	ActiveDays int `json:"active_days,omitempty" minimum:"1" maximum:"36500" default:"7" jsonschema:"a thread used within so many days counts as active"`
}

// ReconcileInput is the input of reconcile_threads.
type ReconcileInput struct{}

// Health is the answer to thread_health.
type Health struct {
	Success         bool          `json:"success"`
	ThreadCount     int           `json:"thread_count"`
	ActiveThreads   int           `json:"active_threads" jsonschema:"used within active_days"`
	InactiveThreads int           `json:"inactive_threads"`
	ActiveDays      int           `json:"active_days"`
	AvgTokenCount   float64       `json:"avg_token_count"`
	MaxTokenCount   int64         `json:"max_token_count"`
	DBSizeMB        float64       `json:"db_size_mb" jsonschema:"registry and ledger with their logs, MiB"`
	CheckpointCount int           `json:"checkpoint_count" jsonschema:"signed checkpoints recorded by ended threads"`
	Running         int           `json:"running" jsonschema:"threads whose process lives"`
	Queued          int           `json:"queued" jsonschema:"threads that stand in line for a slot"`
	MaxRunning      int           `json:"max_running" jsonschema:"slots"`
	Stuck           []thread.ID   `json:"stuck" jsonschema:"threads whose process lives and that have recorded nothing for far longer than a model call may take"`
	SpendToday      thread.Micros `json:"spend_today" jsonschema:"US dollars spent by threads created since midnight UTC"`
	SetAside        []string      `json:"set_aside,omitempty" jsonschema:"damaged databases that were replaced and kept"`
	OrphanedFolders int           `json:"orphaned_folders" jsonschema:"thread folders without a row"`
	Next            string        `json:"next,omitempty" jsonschema:"what to call next"`
}

// Reconciliation is the answer to reconcile_threads: where registry, ledger and
// folders disagree.
type Reconciliation struct {
	Success  bool        `json:"success" jsonschema:"true when nothing is found"`
	Threads  int         `json:"threads" jsonschema:"rows looked at"`
	Folders  int         `json:"folders" jsonschema:"folders looked at"`
	Budgets  int         `json:"budgets" jsonschema:"ledger rows looked at"`
	Settled  []thread.ID `json:"settled" jsonschema:"threads found dead just now and settled, as every look does"`
	Next     string      `json:"next,omitempty" jsonschema:"what to call next"`
	Findings []Finding   `json:"findings"`
}

// Finding is one disagreement.
type Finding struct {
	Kind     string    `json:"kind" jsonschema:"folder_missing, row_missing, reservation_without_thread, process_missing, chain_broken, parent_missing, meta_unreadable, meta_disagrees or lock_stale"`
	ThreadID thread.ID `json:"thread_id"`
	Detail   string    `json:"detail" jsonschema:"what disagrees with what"`
	Mend     string    `json:"mend" jsonschema:"what puts it right"`
}

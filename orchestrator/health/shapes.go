package health

import "github.com/rye-mcp/rye-mcp/runtime/thread"

// Request asks how the threads of a project are.
type Request struct {
	ActiveDays int  `json:"active_days,omitempty" minimum:"1" maximum:"36500" default:"7" jsonschema:"used within so many days"`
	All        bool `json:"all,omitempty" jsonschema:"every folder; slow"`
}

// ReconcileInput is the input of reconcile_threads. Without All the newest 1000 threads
// are compared, those that have not ended, all open budgets, and as many folders.
type ReconcileInput struct {
	All   bool `json:"all,omitempty" jsonschema:"every thread; slow"`
	Apply bool `json:"apply,omitempty" jsonschema:"mend what can be"`
}

// Report is the answer to thread_health.
type Report struct {
	Success         bool          `json:"success"`
	ThreadCount     int           `json:"thread_count"`
	ActiveThreads   int           `json:"active_threads" jsonschema:"used within active_days"`
	InactiveThreads int           `json:"inactive_threads"`
	ActiveDays      int           `json:"active_days"`
	AvgTokenCount   float64       `json:"avg_token_count"`
	MaxTokenCount   int64         `json:"max_token_count"`
	DBSizeMB        float64       `json:"db_size_mb" jsonschema:"registry and ledger with their logs, MiB"`
	Folders         int           `json:"folders" jsonschema:"looked at"`
	CheckpointCount int           `json:"checkpoint_count" jsonschema:"of ended threads, in these folders"`
	Running         int           `json:"running" jsonschema:"threads whose process lives"`
	Queued          int           `json:"queued" jsonschema:"threads that are queued for a slot"`
	MaxRunning      int           `json:"max_running" jsonschema:"slots"`
	Stuck           []thread.ID   `json:"stuck" jsonschema:"alive, silent for longer than a call may take"`
	SpendToday      thread.Micros `json:"spend_today" jsonschema:"US dollars, by threads created since midnight UTC"`
	SetAside        []string      `json:"set_aside,omitempty" jsonschema:"damaged databases, replaced and kept"`
	OrphanedFolders int           `json:"orphaned_folders" jsonschema:"of these folders, without a row"`
	// SizesMB is what things take on the disk: databases, wal, and of the folders that were
	// looked at transcripts, artifacts, thread_logs; renderings; what else is kept.
	SizesMB map[string]float64 `json:"sizes_mb" jsonschema:"MiB; those of threads are of the folders looked at"`
	Growth  Growth             `json:"growth"`
	Advice  []string           `json:"advice,omitempty" jsonschema:"what to do about what was measured"`
	Partial bool               `json:"partial,omitempty" jsonschema:"there are more folders"`
	Next    string             `json:"next,omitempty" jsonschema:"what to call next"`
}

// Reconciliation is the answer to reconcile_threads: where registry, ledger and
// folders disagree.
type Reconciliation struct {
	Success  bool        `json:"success" jsonschema:"true when nothing is found, or all of it is mended"`
	Partial  bool        `json:"partial,omitempty" jsonschema:"there are more threads or folders"`
	Total    int         `json:"thread_count"`
	Threads  int         `json:"threads" jsonschema:"rows looked at"`
	Folders  int         `json:"folders" jsonschema:"folders looked at"`
	Budgets  int         `json:"budgets" jsonschema:"ledger rows looked at"`
	Settled  []thread.ID `json:"settled" jsonschema:"threads found dead and settled just now"`
	Mended   int         `json:"mended" jsonschema:"findings that were put right just now"`
	Next     string      `json:"next,omitempty" jsonschema:"what to call next"`
	Findings []Finding   `json:"findings"`
	// Mendable says that apply would put something right.
	Mendable bool `json:"-"`
}

// Finding is one disagreement. [Kinds] lists the kinds.
type Finding struct {
	Kind     string    `json:"kind" jsonschema:"for example row_missing, folder_missing, row_edited, chain_broken, reservation_without_thread or rendering_stale"`
	ThreadID thread.ID `json:"thread_id,omitempty"`
	Detail   string    `json:"detail"`
	Mend     string    `json:"mend" jsonschema:"what puts it right, or what was done"`
	Mended   bool      `json:"mended,omitempty"`
}

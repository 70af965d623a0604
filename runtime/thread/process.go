package thread

// Process is the process of a thread as its row names it. A number alone names
// none: it is given out again, and another machine, or another container on this
// one, has a process of its own with that number.
type Process struct {
	PID          int // 0 until it has started
	Host         string
	Boot         string // which start of which kernel; empty where an older version wrote the row
	PIDNamespace string // on Linux; empty elsewhere
	Started      int64  // when, by the system's own count; 0 where that is not known
	Worker       string // name of the worker of a fleet that runs it; empty: none
}

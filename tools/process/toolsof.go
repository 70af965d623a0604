package process

// Tool is a process that a tool of a thread has started.
type Tool struct {
	PID  int
	Name string // as the process calls itself
}

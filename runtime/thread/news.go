package thread

import "time"

// News is something that has come to pass with a thread and that somebody else may
// want to know.
type News struct {
	Seq        int64 // its place among all of the project; never given out twice
	Kind       NewsKind
	ThreadID   ID
	QuestionID string // of Asked
	Origin     string // key of the client that is to be told, see [Origin]; empty: nobody
	Told       bool   // it has been
	At         time.Time
}

// NewsKind says what has come to pass.
type NewsKind string

// The kinds of news.
const (
	Ended    NewsKind = "ended" // with its outcome; a thread that another continues has not ended
	Asked    NewsKind = "asked"
	Budget80 NewsKind = "budget_80" // a root and all below it have spent 80 % of its limit
)

// Origin is the client that a thread was started for, the person's own program. The
// zero value stands for nobody: a thread of a thread, or of a person at a terminal.
type Origin struct {
	Client string // name of the client software, as it says
	Key    string // tells this client from others of the name
}

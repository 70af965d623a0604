package thread

import "time"

// Message is something that a thread is told while it works. It stands in the thread's
// queue until the thread has it in its transcript.
type Message struct {
	ID   string // UUID
	Kind MessageKind
	// Reader is the thread that is told. It changes when another thread continues the one
	// that was told, which had not read it.
	Reader ID
	From   Sender
	Text   string
	// Interrupt says that a call of the model, or a tool, that is on its way is broken off
	// for the message.
	Interrupt bool
	At        time.Time
}

// MessageKind says what a message is to the thread that reads it.
type MessageKind string

// The kinds of message.
const (
	Steer MessageKind = "steer" // an instruction
	Note  MessageKind = "note"  // data, and never an instruction
	// Happened says that something has come to pass. It stands in no queue: the thread that
	// is told finds it out itself.
	Happened MessageKind = "event"
)

// Told is what an answer tells of a thread: how it stands, and whether it asks.
type Told struct {
	ThreadID ID
	Status   State
	Asks     bool
}

// Sender is who said a message.
type Sender struct {
	Kind SenderKind `json:"kind"`
	Name string     `json:"name,omitempty"` // of a client as it says, or the id of a thread
}

// SenderKind says what a sender is to the thread that is told.
type SenderKind string

// The kinds of sender.
const (
	ByPerson  SenderKind = "person"
	ByClient  SenderKind = "client"  // a program of the person
	ByParent  SenderKind = "parent"  // the thread that has started the one that is told, or one above that
	ByChild   SenderKind = "child"   // a thread below
	BySibling SenderKind = "sibling" // any other thread below the same root
	ByRye     SenderKind = "rye"     // an event
)

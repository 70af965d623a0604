// Package eval tells how good retrieval is: texts and questions of which is known which
// texts answer them go into an index of their own, and what comes back is counted, by
// words, by vectors and by both. Nothing is judged by a model.
package eval

import (
	"errors"
	"fmt"
)

// Document is a text that can be found.
type Document struct {
	ID, Text string
}

// Question is what is asked, and the ids of the documents that answer it. Without any
// nothing should be found.
type Question struct {
	Text     string
	Evidence []string
}

// Set is documents with questions about them.
type Set struct {
	Documents []Document
	Questions []Question
}

// LineError says what is wrong with a line of a set.
type LineError struct {
	Line   int // from 1
	Reason string
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// ErrEmpty says that a set has no documents or no questions.
var ErrEmpty = errors.New("the set needs documents and questions")

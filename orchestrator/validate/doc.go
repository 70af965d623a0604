// Package validate finds what would go wrong with items and settings when they
// are used, without using them.
//
// Each kind of finding has a [Code] that does not change. An error is what
// cannot work: a thread is refused, ends at once, or a part of the item never has
// an effect that it is there for. A warning is what works otherwise than it
// seems. That an item is not signed is a warning, for signing comes last.
//
// A check is a function over an item that has been read, and what is around it
// ([Validator] reads both). It leaves alone what it cannot know, such as a
// capability that only the parent of a thread could give.
package validate

// Package memory keeps what threads and people note for later threads: entries of a few
// kinds, dense and bounded, on top of the index of package rag.
//
// An entry is a document that the user's state key has signed for the place of the
// project ([place.Seal]); the row that the index finds it by carries it as metadata. Every
// reading verifies it, so a row that was altered, or brought along from elsewhere, is
// counted and never shown. All else that the index has (words, vector, thread)
// decides only whether and where an entry is found.
//
// An entry that is near enough to one that stands is folded into it, and the writer told;
// one that takes the place of others leaves them as history. Reading and then writing is done
// under one lock of the project, so that writers at the same time lose nothing.
package memory

// Package rag is a generic index of texts: one SQLite file, any number of namespaces,
// any consumer. A row is found by its words, by its vector, or by both.
//
// # Finding
//
// A query has a text, a vector, or both. Full text search ranks rows by BM25, vectors rank
// them by cosine. [Query.MinFloor] and [Query.ScoreRatio] decide what is good enough:
//
//   - A row whose vector can be compared must reach MinFloor. It passes when its cosine
//     reaches ScoreRatio of the best one, or its BM25 that of the best BM25.
//   - A row without such a vector passes by its BM25 alone.
//
// Reciprocal rank fusion (https://doi.org/10.1145/1571941.1572114, k = 60) orders what
// passes, and decides nothing else. The same query twice has the same answer: what is equal
// is ordered by project and key.
//
// Vectors of different models, or of different dimensions, are never compared. An answer
// says how many rows were left out for that.
//
// # Writing
//
// Many processes write one file, see package sharedfile. The file is made with the first
// write: to look makes none. One that is damaged, or lacks the mark of its place, is set
// aside, and the caller is told ([Options.Damaged]).
package rag

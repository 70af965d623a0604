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
// passes, and decides nothing else. Vectors have one voice, and so have words, but what passes
// by its words and has a vector to compare shares it: words that many rows have hardly tell
// these apart, and one that a single row has, an id, counts in full. The same query twice has the same answer: what is equal
// is ordered by project and key.
//
// Of scripts without blanks each character is a word of a row, and each two in a row are one of
// a query.
//
// Vectors of different models, or of different dimensions, are never compared. An answer
// says how many rows were left out for that.
//
// # Many vectors
//
// To read 100 000 vectors from SQLite takes a second. So the vectors of one model in one
// namespace are parted into chapters of 512, in the order in which they were written, and
// each chapter has a file of codes: its vectors at 7 bits a number, see package vector. A
// search goes through these, which tells the most that each cosine can be, and then reads
// those vectors that can be among the best. The codes decide which vectors are looked at
// first and when it is enough; every score and every filter is that of the database.
//
// The files are a cache beside the database. Each is named by a random stamp that stands in
// the row of its chapter, so that the file of another database, or of a copy of this one that
// went another way, has another name. It is written whole under another name and renamed,
// by whoever needs it first, and is never changed. Rows that were replaced or deleted since
// are not found in the database any more; those that are in no chapter yet are compared one
// by one. A chapter of which little is left is joined with the next one.
//
// # Writing
//
// Many processes write one file, see package sharedfile. The file is made with the first
// write: to look makes none. One that is damaged is set aside, the rows that can be read are
// brought back into a new one, and the caller is told ([Options.Damaged]). One that lacks the
// mark of its place is set aside unread.
package rag

// Package search finds items of all spaces by their text.
//
// The index is an SQLite file with one FTS5 table. It is derived: every search
// first compares it with the files, by size and modification time (items of the
// system space by their hash), so it may be deleted at any time and be shared by
// several processes. It only finds; what is shown of a hit is read from its file,
// so that an index that somebody else has written can lie about nothing but the
// order. A file that is corrupt is replaced, and where none can be written the
// index lives in memory. Items that take long are indexed while answers say so.
//
//	Search → lookup (query, scope, filters) → refresh (source → documents → tables)
//	       → find (page) → show (files → hits)
package search

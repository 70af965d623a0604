// Package search finds items of all spaces by their text.
//
// The index is an SQLite file with one FTS5 table. It is derived: every search
// first compares it with the files, by size and modification time (items of the
// system space by their hash), so it may be deleted at any time and be shared
// by several processes. A file that is corrupt is replaced, and where none can
// be written the index lives in memory.
//
//	Search → refresh (source → documents → tables) → find (query, scope → page)
package search

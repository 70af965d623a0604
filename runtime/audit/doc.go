// Package audit checks what a thread left on disk against its signatures and
// against what registry and ledger know of it: thread.json, the transcript, the
// record of its capabilities, its rendering as knowledge, and its large results.
//
// A signature says that these bytes were written by a holder of the key, and not
// that they are the newest. So every file must also name the thread it lies with,
// and an older state of a thread, put back whole, shows in the registry: its row
// has ended, or has more turns.
//
// Somebody who can write the registry too can put both back together. Nothing here
// notices that; a receipt that was kept elsewhere shows it.
package audit

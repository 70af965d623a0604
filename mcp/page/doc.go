// Package page serves the page on which a person looks at the threads of this
// machine's projects and works on them: its files at / and /ui/, its API below
// /ui/api/.
//
// Requests to the API carry a token of the page, which has nothing to do with that
// of MCP clients: a token lives as long as the process, comes in the fragment of the
// address, which browsers send nobody, and goes out in the header Authorization. There
// is no cookie, since the cookies of one port reach every port of a host. The program
// that opens a browser gives it a code instead (argv can be read by others), which is
// exchanged once, within a minute. The log has what a token did, and not the token.
//
// Requests come from the page's own origin or from no page at all, and those that change
// something from no process that a thread's tools have started, as far as that can be
// known. Answers are JSON, streams are lines of JSON, and what threads have written is
// only ever text or a download.
package page

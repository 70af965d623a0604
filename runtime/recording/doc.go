// Package recording is the archive of threads: what they were started with, what was
// said, what their tools gave, and the items that they were made of, in one signed file.
// It can be checked, imported and replayed anywhere.
//
// The file is a zip archive (PKWARE APPNOTE 6.3, as archive/zip of the standard library
// writes it) with these members:
//
//	manifest.json               what follows, each with size and SHA-256; signed
//	threads/N/thread.json       as [thread.Meta], without its signature
//	threads/N/transcript.jsonl  the events, with their checkpoints; of answers as they
//	                            arrived only the lengths
//	threads/N/capabilities.md   what the thread could do, without its signature
//	threads/N/settings.json     [Settings]: the model and the limits that decided
//	threads/N/expected.json     [Observed]: what a replay is held against
//	threads/N/artifacts/…       large results, each named by the SHA-256 of its content
//	items/N                     a directive or knowledge that the threads were made of
//
// The manifest is canonical JSON (RFC 8785) signed with the item key of the exporter,
// and has the public half. Members have no times and are sorted, so that the same
// threads make the same bytes. Secrets are taken out and the paths of project and home
// shortened before anything is hashed, see [Redactor].
package recording

// Package config loads the settings below .ai/config of the three spaces.
//
// A settings file may stand in every space. The system space's is read first,
// then the user's, then the project's: maps are merged key by key, any other
// value replaces the earlier one, and a key without a value says nothing. The
// system space ships a file for everything but user-made providers, and the
// defaults stand there and nowhere else.
//
// Each file is checked by itself against a JSON Schema in schema/, so that an
// error names the file and line it stands in. An unknown key is a warning, as
// older and newer versions share these files; a value of the wrong type or out
// of range is an [*Error].
//
// A project's files may be somebody else's work. Each key of a schema says with
// x-untrusted what they may do with it: as a rule lower what holds without them, or
// nothing. Settings that the user has accepted, of which package trust keeps a
// record, hold in full, but for the keys that are the user's alone (x-user-only).
// [Snapshot.LeftOut] tells what does not count. See settle.go.
//
// A call reads its settings once: [Loader.Read] takes a [Snapshot], which is handed
// on as a value to all who work on the call.
package config

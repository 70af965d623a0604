// Package sign makes and checks Ed25519 signatures of items and of JSON
// documents.
//
// A signed item carries one comment line, first in the file or second after a
// shebang:
//
//	# rye:signed:2026-03-29T05:38:21Z:<sha256>:<signature>:<fingerprint>
//
// The hash is SHA-256 over the file without that line and, in every language
// but Markdown, without the shebang line. What is signed is the hash in hex, as
// ASCII. See [Split], [Attach] and [Check].
//
// A signed JSON document carries its signature in the member "_signature". See
// [EncodeSigned].
//
// The package knows one key, the user's own. Whom to trust besides, and what to
// do with an unsigned item, is not decided here.
package sign

import "errors"

var (
	// ErrNoKey says that the user has no signing key.
	ErrNoKey = errors.New("no signing key")
	// ErrKeyExists says that a key would have been overwritten.
	ErrKeyExists = errors.New("a signing key exists already")
	// ErrUnsigned says that content carries no signature.
	ErrUnsigned = errors.New("not signed")
	// ErrBadSignature says that a signature does not fit the content or the key.
	ErrBadSignature = errors.New("bad signature")
)

// Package sign makes and checks Ed25519 signatures of items and of JSON
// documents.
//
// A signed item carries one comment line, first in the file or second after a
// shebang:
//
//	# rye:signed:2026-03-29T05:38:21Z:<sha256>:<signature>:<fingerprint>
//
// The hash is SHA-256 over the file without that line and, in scripts, without a
// plain shebang line: so whoever runs a script must not let that line choose the
// program. What is signed is the hash in hex, as ASCII. Time, provenance, name
// and place of the file are not. See [Split], [Attach] and [Signature.Covers].
//
// A signed JSON document carries its signature in the member "_signature". See
// [EncodeSigned].
//
// Whom to trust, and what to do with a file whose signature is not good, is
// decided in package trust.
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

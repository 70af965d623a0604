// Package trust decides whose signatures count and what follows from it.
//
// It stands apart from package sign, which knows formats and arithmetic: a
// decision needs the three spaces, the kinds of items and the user's settings.
//
// # Keys
//
// The user's own key is trusted. Another key is when a document in
// config/keys/trusted/<fingerprint>.toml of a space vouches for it:
//
//	# rye:signed:…
//	fingerprint = "c6fcdd042a139020"
//	owner = "ada"
//	[public_key]
//	pem = """
//	-----BEGIN PUBLIC KEY-----
//	…
//	"""
//
// A document of the user's space counts when a trusted key signed it: the own
// key, then those that such documents add, and so on. Keys that only vouch for
// each other add nothing. A document of the project's space counts when a key
// signed it that is trusted without the project, so that a cloned repository
// cannot trust itself. A document of the system space is part of the program.
// See [Load].
//
// # Items
//
// [Keyring.Verify] says what the signature of a file is worth, [Checker.Check] what
// follows in the user's mode: go on, go on with a warning, or refuse.
//
// A signature says who wrote these bytes, as which kind and under which id, not
// when: time and provenance of the line are not signed, and an earlier text that
// was signed as the same item still counts. It does not say in which project or
// space: people share items by copying them.
//
// An older signature says none of that but who. It is [Unbound]: anybody who can
// have one text signed as knowledge could put it where directives are. The user
// may accept such signatures by kind; "rye-mcp sign --renew" replaces them.
//
// Files of the system space are checked against the list of hashes that is
// embedded beside them. A program that changes the one in the binary can change the
// other; the check catches content that is passed off as the system's, and it
// costs one hash when an item is used and nothing at start.
//
// # Settings
//
// [ProjectOf] says how far the settings of a project count: a [Record] in the user
// space holds the copy that the user has accepted, which [Take] made of the files
// that were shown. Package config decides what that means for each key.
package trust

import "errors"

// The causes of a [RefusedError], besides sign.ErrUnsigned and sign.ErrBadSignature.
var (
	// ErrUntrustedKey says that a signature was made with a key nobody vouches for.
	ErrUntrustedKey = errors.New("signed by a key that is not trusted")
	// ErrBodyNotCovered says that a signature is over a directive's XML only.
	ErrBodyNotCovered = errors.New("body not covered by the signature")
	// ErrNotShipped says that content stands in the system space that the program
	// was not built with.
	ErrNotShipped = errors.New("not the content the program was built with")
)

var (
	// ErrUnknownKey says that no key has the fingerprint.
	ErrUnknownKey = errors.New("no such key")
	// ErrAmbiguousKey says that several keys begin with these digits.
	ErrAmbiguousKey = errors.New("several keys match")
)

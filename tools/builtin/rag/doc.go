// Package rag is the tools rye/rag/*: a generic index of texts, in namespaces, that is
// found by words and by vectors. It is off until the person switches memory on; then
// every call is a clean no-op that says so.
//
// Texts that a model stores are data for later models, so a thread writes in its own name and
// project alone, secrets are taken out before anything is kept or leaves the machine,
// and the namespaces of rye-mcp itself are out of reach.
package rag

// Package httpclient is the primitive of tools that are one request over HTTP: a
// method, an address, headers and a body with the parameters of the call in their
// places.
//
// The author of a tool says where requests go. A parameter can be part of the
// path, the query, a header or the body, and is escaped for its place; it can be the
// address itself only for a tool without credentials.
package httpclient

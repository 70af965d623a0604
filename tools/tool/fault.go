package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
)

// Code is a stable code of a failure. Programs may switch on it; codes are
// added, never renamed.
type Code string

// The closed list of codes.
const (
	CodeBadArguments     Code = "bad_arguments"       // arguments do not fit the schema
	CodeBadID            Code = "bad_id"              // an id that cannot name an item or thread
	CodeNotFound         Code = "not_found"           // no such item or thread
	CodeAmbiguous        Code = "ambiguous"           // more than one item, or thread, has that id
	CodeInvalidItem      Code = "invalid_item"        // an item that does not parse
	CodeIntegrity        Code = "integrity"           // an item without a good signature
	CodeInvalidConfig    Code = "invalid_config"      // a configuration file that does not load
	CodeInvalidInputs    Code = "invalid_inputs"      // inputs of a directive: missing, mistyped, undeclared
	CodeInvalidLimits    Code = "invalid_limits"      // unknown limit or bad value
	CodeInvalidQuery     Code = "invalid_query"       // a search query that does not parse
	CodeUnsupported      Code = "unsupported"         // a combination the runtime refuses
	CodePermissionDenied Code = "permission_denied"   // a capability is missing
	CodeDepthExhausted   Code = "depth_exhausted"     // no deeper child allowed
	CodeSpawnsExhausted  Code = "spawns_exhausted"    // no more children allowed
	CodeBudgetExhausted  Code = "budget_insufficient" // the reservation does not fit
	CodeParentGone       Code = "parent_gone"         // the named parent cannot spawn
	CodeNoProvider       Code = "no_provider"         // no model provider is usable
	CodeUnpriced         Code = "unpriced_model"      // a spend limit needs a price
	CodeNoKey            Code = "no_signing_key"      // signing needs a key
	CodeRequestKeyReused Code = "request_key_reused"  // the key names other work
	CodeOutsideProject   Code = "outside_project"     // a path leaves the project
	CodeProtected        Code = "protected_path"      // a file that tools do not touch
	CodeStaleLine        Code = "stale_line_id"       // the file changed since it was read
	CodeToolFailed       Code = "tool_failed"         // the tool ran and failed
	CodeTimeout          Code = "timeout"             // the tool's own time ran out
	CodeCancelled        Code = "cancelled"           // the call was cancelled
	CodeNoProject        Code = "no_project"          // no project could be determined
	CodeDiskFull         Code = "disk_full"           // nothing can be written
	CodeConflict         Code = "conflict"            // somebody else was first, or is at it
	CodeBusy             Code = "database_busy"       // another process holds the thread database and does not go on
	CodeStore            Code = "store_unavailable"   // the server that keeps the threads cannot be used
	CodeInternal         Code = "internal"            // a failure of rye-mcp itself
)

// Fault is a failure told to a model: what was wrong, what is valid, what to
// call next. Every other error becomes one at the edge through [AsFault].
type Fault struct { //nolint:errname // named for its audience; Go code asks for its cause
	Code    Code
	Message string         // what was wrong, and what is valid
	Hint    string         // what to call next; may be empty
	Try     string         // what a person can do instead, such as to trust or sign; no model is told
	Details map[string]any // code-specific: nearest_ids, valid_limits, declared_inputs, …
	Err     error          // the cause, for Go callers; never shown
}

// Faultf makes a fault without details.
func Faultf(code Code, format string, args ...any) *Fault {
	err := fmt.Errorf(format, args...)
	return &Fault{Code: code, Message: err.Error(), Err: errors.Unwrap(err)}
}

// WithHint adds what to call next.
func (f *Fault) WithHint(format string, args ...any) *Fault {
	f.Hint = fmt.Sprintf(format, args...)
	return f
}

// WithTry adds what a person can do. Commands that change what is trusted belong
// here: a model that reads them could run them, or have them run.
func (f *Fault) WithTry(format string, args ...any) *Fault {
	f.Try = fmt.Sprintf(format, args...)
	return f
}

// With adds a detail.
func (f *Fault) With(key string, value any) *Fault {
	if f.Details == nil {
		f.Details = make(map[string]any)
	}
	f.Details[key] = value
	return f
}

func (f *Fault) Error() string { return f.Message }

func (f *Fault) Unwrap() error { return f.Err }

// Failure is the failure object of the result shapes: success, code, error and
// hint come before the details.
type Failure struct {
	fault *Fault
}

// Body is what a model is told of the fault.
func (f *Fault) Body() Failure { return Failure{f} }

// MarshalJSON writes the facts first: a client that cuts loses details. A detail
// cannot take the place of one of them.
func (b Failure) MarshalJSON() ([]byte, error) {
	head, err := plainJSON(struct {
		Success bool   `json:"success"`
		Code    Code   `json:"code"`
		Error   string `json:"error"`
		Hint    string `json:"hint,omitempty"`
	}{false, b.fault.Code, b.fault.Message, b.fault.Hint})
	details := maps.Clone(b.fault.Details)
	for _, name := range []string{"success", "code", "error", "hint"} {
		delete(details, name)
	}
	if err != nil || len(details) == 0 {
		return head, err
	}
	rest, err := plainJSON(details)
	if err != nil {
		return nil, err
	}
	return append(append(head[:len(head)-1], ','), rest[1:]...), nil
}

// plainJSON is v as JSON without the escapes that only HTML needs.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

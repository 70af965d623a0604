package server

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// roomArgument is the argument of every tool that says how long its answer may be.
const roomArgument = "max_bytes"

// Bounds of max_bytes. What a page has beside its content takes pageRoom at most.
const (
	leastRoom = 500
	mostRoom  = 1_000_000
	pageRoom  = 2_000
)

// answering is how the answer to a call is to be shaped.
type answering struct {
	room    int
	notices *noticeSource // nil: the handler names none
}

type answeringKey struct{}

func newAnswering(ctx context.Context) (context.Context, *answering) {
	a := &answering{room: DefaultRoom}
	return context.WithValue(ctx, answeringKey{}, a), a
}

// answeringFrom is that of the call which ctx belongs to.
func answeringFrom(ctx context.Context) *answering {
	if a, ok := ctx.Value(answeringKey{}).(*answering); ok {
		return a
	}
	return &answering{room: DefaultRoom}
}

func (a *answering) notice(place string, list func() []string) {
	a.notices = &noticeSource{place: place, list: list}
}

// takeRoom reads how long the answer may be from the arguments. It takes the
// argument away where the tool itself does not know it.
func (a *answering) takeRoom(args json.RawMessage, paged bool, schema json.RawMessage) (json.RawMessage, error) {
	var given map[string]json.RawMessage
	if json.Unmarshal(args, &given) != nil {
		return args, nil //nolint:nilerr // the tool says what is wrong
	}
	raw, asked := given[roomArgument]
	if !asked || isNull(raw) {
		return args, nil
	}
	n, err := strconv.Atoi(strings.Trim(string(raw), `"`))
	if err != nil || n < leastRoom || n > mostRoom {
		return nil, tool.Faultf(tool.CodeBadArguments, "%q must be a whole number from %d to %d, got %s",
			roomArgument, leastRoom, mostRoom, clip(string(raw), 100)).WithHint("Leave it out for an answer of at most %d bytes.", DefaultRoom)
	}
	a.room = n
	if paged {
		a.room = max(DefaultRoom, n+pageRoom)
	}
	if declares(schema, roomArgument) {
		return args, nil
	}
	delete(given, roomArgument)
	return json.Marshal(given)
}

// declares reports whether an input schema has a property.
func declares(schema json.RawMessage, name string) bool {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	return json.Unmarshal(schema, &s) == nil && s.Properties[name] != nil
}

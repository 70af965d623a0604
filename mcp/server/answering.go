package server

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// roomArgument is the argument of every tool that says how long its answer may be.
const roomArgument = "max_bytes"

// Bounds of max_bytes. All that a page has beside its content takes pageRoom at most.
const (
	leastRoom = 500
	mostRoom  = 1_000_000
	pageRoom  = 2_000
)

// answering is how the answer to a call is to be shaped.
type answering struct {
	room    int
	common  map[string]string
	notices *noticeSource // nil: the handler names none
	news    func(ctx context.Context, result any) json.Marshaler
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

func (a *answering) tells(tell func(context.Context, any) json.Marshaler) { a.news = tell }

// take reads the arguments that are no part of the tool's own input, and takes them
// off: the common ones, and how long the answer may be, which a paged tool gets
// itself too.
func (a *answering) take(args json.RawMessage, common []tool.Text, paged bool) (json.RawMessage, error) {
	var given map[string]json.RawMessage
	if json.Unmarshal(args, &given) != nil {
		return args, nil //nolint:nilerr // the tool says what is wrong
	}
	all := len(given)
	for _, c := range common {
		if err := a.takeCommon(given, c.Name); err != nil {
			return nil, err
		}
	}
	if err := a.takeRoom(given, paged); err != nil {
		return nil, err
	}
	if len(given) == all {
		return args, nil
	}
	return json.Marshal(given)
}

func (a *answering) takeCommon(given map[string]json.RawMessage, name string) error {
	raw := given[name]
	delete(given, name)
	if isNull(raw) {
		return nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return tool.Faultf(tool.CodeBadArguments, "%q must be string, got %s", name, item.Clip(string(raw), 100)).
			WithHint(tool.HintArguments)
	}
	if a.common == nil {
		a.common = map[string]string{}
	}
	a.common[name] = text
	return nil
}

func (a *answering) takeRoom(given map[string]json.RawMessage, paged bool) error {
	raw := given[roomArgument]
	if !paged {
		delete(given, roomArgument)
	}
	if isNull(raw) {
		return nil
	}
	n, err := strconv.Atoi(strings.Trim(string(raw), `"`))
	if err != nil || n < leastRoom || n > mostRoom {
		return tool.Faultf(tool.CodeBadArguments, "%q must be a whole number from %d to %d, got %s",
			roomArgument, leastRoom, mostRoom, item.Clip(string(raw), 100)).WithHint("Leave it out for an answer of at most %d bytes.", DefaultRoom)
	}
	a.room = n
	if paged {
		a.room = max(DefaultRoom, n+pageRoom)
	}
	return nil
}

package server_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

type echoIn struct {
	Text   string `json:"text" jsonschema:"what to say"`
	Repeat int    `json:"repeat,omitempty" default:"1" minimum:"0"`
}

type echoOut struct {
	Success  bool   `json:"success"`
	Text     string `json:"text"`
	Request  string `json:"request"`
	Client   string `json:"client"`
	Protocol string `json:"protocol"`
}

var echo = server.Tool[echoIn, echoOut]{
	Name:        "echo",
	Description: "Says it again.",
	Annotations: server.Annotations{Title: "Echo", ReadOnly: true, Idempotent: true},
	Handle: func(_ context.Context, call server.Call, in echoIn) (echoOut, error) {
		return echoOut{
			Success:  true,
			Text:     strings.Repeat(in.Text, in.Repeat),
			Request:  call.RequestID,
			Client:   strings.TrimSpace(call.Session.Client + " " + call.Session.ClientVersion),
			Protocol: call.Session.Protocol,
		}, nil
	},
}

var errKnown = errors.New("known to the mapping")

func mapError(err error) *tool.Fault {
	if errors.Is(err, errKnown) {
		return tool.Faultf(tool.CodeNoKey, "mapped: %w", err).WithHint("Call rye_sign.")
	}
	return nil
}

type failIn struct {
	How string `json:"how" enum:"fault,mistyped,huge,known,unknown,timeout,panic,nan,long,longest"`
}

type failOut struct {
	Success bool           `json:"success"`
	ID      string         `json:"id"`
	Data    string         `json:"data,omitempty"`
	Number  float64        `json:"number,omitempty"`
	Many    map[string]int `json:"many,omitempty"`
}

var fail = server.Tool[failIn, failOut]{
	Name:        "fail",
	Description: "Fails in the way asked for.",
	Annotations: server.Annotations{Title: "Fail", Destructive: true, OpenWorld: true},
	Handle: func(_ context.Context, _ server.Call, in failIn) (failOut, error) {
		out := failOut{Success: true, ID: "abc"}
		switch in.How {
		case "fault":
			return out, fmt.Errorf("wrapped: %w", tool.Faultf(tool.CodeNotFound, "no such thing").
				WithHint("Call echo.").With("nearest_ids", []string{"x"}).With("id", "xyz"))
		case "mistyped":
			return out, tool.Faultf(tool.CodeBadID, "id is bad").With("id", 7)
		case "huge":
			return out, tool.Faultf(tool.CodeAmbiguous, "%s", strings.Repeat("é", 30_000)).With("ids", strings.Repeat("x", 50_000))
		case "known":
			return out, fmt.Errorf("deep: %w", errKnown)
		case "unknown":
			return out, errors.New("disk on fire")
		case "timeout":
			return out, fmt.Errorf("asking: %w", context.DeadlineExceeded)
		case "panic":
			panic("secret of the stack")
		case "nan":
			out.Number = math.NaN()
		case "long":
			out.Data = strings.Repeat("x", 40_000)
		case "longest":
			out.Data = strings.Repeat("x", 40_000-len(`{"success":true,"id":"abc","data":""}`))
		}
		return out, nil
	},
}

type countIn struct {
	Steps int `json:"steps"`
	Pause int `json:"pause,omitempty" jsonschema:"milliseconds between two steps"`
	Stuck int `json:"stuck,omitempty" jsonschema:"the number does not grow beyond this"`
}

type countOut struct {
	Success bool `json:"success"`
	Steps   int  `json:"steps"`
}

var count = server.Tool[countIn, countOut]{
	Name:        "count",
	Description: "Reports each step.",
	Annotations: server.Annotations{Title: "Count", ReadOnly: true},
	Handle: func(ctx context.Context, call server.Call, in countIn) (countOut, error) {
		for i := 1; i <= in.Steps; i++ {
			at := i
			if in.Stuck > 0 {
				at = min(i, in.Stuck)
			}
			call.Progress(server.Progress{Progress: float64(at), Total: float64(in.Steps), Message: fmt.Sprintf("step %d", i)})
			if in.Pause == 0 || i == in.Steps {
				continue
			}
			select {
			case <-time.After(time.Duration(in.Pause) * time.Millisecond):
			case <-ctx.Done():
				return countOut{}, context.Cause(ctx)
			}
		}
		return countOut{Success: true, Steps: in.Steps}, nil
	},
}

type blockIn struct{}

type blockOut struct {
	Success bool `json:"success"`
}

// blocked is what a test sees of a call of block.
type blocked struct {
	started chan string // request ids
	ended   chan error  // causes
}

// block waits until its context ends.
func block(seen *blocked) server.Tool[blockIn, blockOut] {
	return server.Tool[blockIn, blockOut]{
		Name:        "block",
		Description: "Waits until it is cancelled.",
		Annotations: server.Annotations{Title: "Block", ReadOnly: true},
		Handle: func(ctx context.Context, call server.Call, _ blockIn) (blockOut, error) {
			if seen != nil {
				seen.started <- call.RequestID
			}
			<-ctx.Done()
			if seen != nil {
				seen.ended <- context.Cause(ctx)
			}
			return blockOut{}, context.Cause(ctx)
		},
	}
}

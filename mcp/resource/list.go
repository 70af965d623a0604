package resource

import (
	"crypto/sha256"
	"fmt"
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// maxTitle is how many bytes of a thread's name a list shows.
const maxTitle = 80

// listCursor names a place in the list. The list moves while a client pages through it:
// a thread that is missed then is told as a change.
func listCursor(from int) string { return strconv.Itoa(from) }

func parseListCursor(cursor string) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	from, err := strconv.Atoi(cursor)
	if err != nil || from < 0 {
		return 0, tool.Faultf(tool.CodeBadArguments, "%.40q is not a cursor of this list", cursor).WithHint("give back nextCursor, or leave cursor out")
	}
	return from, nil
}

// describe tells in a line how a thread stands.
func describe(row view.BoardRow) string {
	state := string(row.Status)
	switch {
	case row.Asks:
		state += ", waits for an answer"
	case row.Queued:
		state = "queued"
	}
	return fmt.Sprintf("%s, %s, %s; %s", state, thread.TurnsText(row.Turns), row.Spend, row.Directive)
}

// digest is what a reading holds, or why there is none, in short.
func digest(reading server.Reading, err error) [sha256.Size]byte {
	text := fmt.Sprint(err)
	for _, c := range reading.Contents {
		if c, ok := c.(mcp.TextResourceContents); ok {
			text += fmt.Sprintf("%d %s %v\n", len(c.Text), c.Text, c.Meta["rye/signature"])
		}
	}
	return sha256.Sum256([]byte(text))
}

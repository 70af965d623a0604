package sqlite

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// position is the last row of a page.
type position struct {
	created int64 // Unix milliseconds
	id      thread.ID
}

// cursor is a position as it is given out: JSON in URL-safe base64. It names
// the filter it belongs to, since in another list it would skip rows.
type cursor struct {
	Created int64     `json:"c"`
	ID      thread.ID `json:"i"`
	Filter  string    `json:"f"`
}

func encodeCursor(f store.Filter, last thread.Record) string {
	b, err := json.Marshal(cursor{Created: millis(last.CreatedAt), ID: last.ThreadID, Filter: fingerprint(f)})
	if err != nil {
		panic("bug; a cursor always encodes: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func decodeCursor(f store.Filter) (position, error) {
	b, err := base64.RawURLEncoding.DecodeString(f.Cursor)
	if err != nil {
		return position{}, fmt.Errorf("%w: %w", store.ErrBadCursor, err)
	}
	var c cursor
	if err := json.Unmarshal(b, &c); err != nil {
		return position{}, fmt.Errorf("%w: %w", store.ErrBadCursor, err)
	}
	if _, err := thread.ParseID(string(c.ID)); err != nil || c.Filter != fingerprint(f) {
		return position{}, store.ErrBadCursor
	}
	return position{created: c.Created, id: c.ID}, nil
}

// fingerprint identifies what a filter selects, whatever the page.
func fingerprint(f store.Filter) string {
	f.Limit, f.Cursor = 0, ""
	b, err := json.Marshal(f)
	if err != nil {
		panic("bug; a filter always encodes: " + err.Error())
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}

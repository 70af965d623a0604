package sqlstore

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// position is the last row of a page: what rows are ordered by there, and its id.
type position struct {
	key any // int64 or string
	id  thread.ID
}

// cursor is a position as it is given out: JSON in URL-safe base64. It names
// the filter and the order that it belongs to, since in another list it would skip rows.
type cursor struct {
	Number int64     `json:"n,omitempty"`
	Text   string    `json:"t,omitempty"` // of a list ordered by name
	ID     thread.ID `json:"i"`
	Filter string    `json:"f"`
}

// positionOf is where a row stands.
func (l *listing) positionOf(rec thread.Record) position {
	return position{l.order.key(rec), rec.ThreadID}
}

// cursor is where the page ends that has this place at its end.
func (l *listing) cursor(last position) string {
	c := cursor{ID: last.id, Filter: fingerprint(l.filter)}
	switch key := last.key.(type) {
	case int64:
		c.Number = key
	case string:
		c.Text = key
	}
	b, err := json.Marshal(c)
	if err != nil {
		panic("bug; a cursor always encodes: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// decodeCursor says of every text that is none the same: how it is none helps nobody.
func decodeCursor(f store.Filter) (position, error) {
	b, err := base64.RawURLEncoding.DecodeString(f.Cursor)
	if err != nil {
		return position{}, store.ErrBadCursor
	}
	var c cursor
	if err := json.Unmarshal(b, &c); err != nil {
		return position{}, store.ErrBadCursor
	}
	if _, err := thread.ParseID(string(c.ID)); err != nil || c.Filter != fingerprint(f) {
		return position{}, store.ErrBadCursor
	}
	if f.Sort.By == store.ByName {
		return position{c.Text, c.ID}, nil
	}
	return position{c.Number, c.ID}, nil
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

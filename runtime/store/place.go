package store

import (
	"context"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Place is how far somebody has read what has come to pass. It knows the newest that was
// read: a registry that was lost and made anew counts from 1 again, and where another piece of
// news has that place, or none has come so far, all of what is there is read.
type Place struct {
	last  thread.News
	since thread.News // what was read last of a registry that is no more
}

// LatestPlace is the place behind all that has come to pass.
func LatestPlace(ctx context.Context, s News) (p Place, err error) {
	seq, err := s.LastNews(ctx)
	if err != nil || seq == 0 {
		return p, err
	}
	p.last.Seq = seq
	newest, err := s.News(ctx, seq-1, 1)
	if err == nil && len(newest) > 0 && newest[0].Seq == seq { // else it was deleted meanwhile
		p.last = newest[0]
	}
	return p, err
}

// Read returns what has come to pass behind the place, at most so many, and whether there
// may be more. The place stays where it is until [Place.Pass].
func (p *Place) Read(ctx context.Context, s News, most int) (fresh []thread.News, more bool, err error) {
	for {
		after := max(0, p.last.Seq-1)
		page, err := s.News(ctx, after, most+1)
		if err != nil {
			return nil, false, err
		}
		another, err := p.isOfAnother(ctx, s, page)
		if err != nil {
			return nil, false, err
		}
		if another {
			p.since, p.last = p.last, thread.News{}
			continue
		}
		for _, n := range page {
			if n.Seq > p.last.Seq && !p.wasRead(n) {
				fresh = append(fresh, n)
			}
		}
		more = len(page) > most
		fresh = fresh[:min(len(fresh), most)]
		if len(fresh) > 0 || !more {
			return fresh, more, nil
		}
		p.last = page[len(page)-1]
	}
}

// Pass goes behind a piece of news.
func (p *Place) Pass(n thread.News) { *p = Place{last: n} }

// isOfAnother reports whether a page that begins at the place is one of another registry.
// The newest can also be gone because its thread was deleted: then others have come since,
// or everything is read again that is no older.
func (p *Place) isOfAnother(ctx context.Context, s News, page []thread.News) (bool, error) {
	if p.last.Seq == 0 {
		return false, nil
	}
	if len(page) > 0 && page[0].Seq == p.last.Seq {
		return p.last.ThreadID != "" && !sameNews(page[0], p.last), nil
	}
	newest, err := s.LastNews(ctx)
	return newest < p.last.Seq, err
}

// wasRead reports whether a piece of news was read in the registry before this one.
func (p *Place) wasRead(n thread.News) bool {
	return p.since.Seq > 0 && (n.At.Before(p.since.At) || sameNews(n, p.since))
}

func sameNews(a, b thread.News) bool {
	return a.ThreadID == b.ThreadID && a.Kind == b.Kind && a.QuestionID == b.QuestionID && a.At.Equal(b.At)
}

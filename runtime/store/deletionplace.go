package store

import "context"

// DeletionLister lists what was deleted, see [Deletions].
type DeletionLister interface {
	Deletions(ctx context.Context, f DeletionFilter) ([]Deletion, error)
}

// DeletionPlace is how far somebody has read what was deleted; the zero value is before all of
// it. It knows the newest that was read: a registry that was made anew counts from 1 again,
// and where that one is not in its place everything is read, so that a deletion can be told
// twice.
type DeletionPlace struct{ last Deletion }

// LatestDeletion is the place behind everything that was deleted.
func LatestDeletion(ctx context.Context, s DeletionLister) (p DeletionPlace, err error) {
	newest, err := s.Deletions(ctx, DeletionFilter{Newest: true, Limit: 1})
	if err == nil && len(newest) > 0 {
		p.last = newest[0]
	}
	return p, err
}

// Read tells what was deleted behind the place, which moves on.
func (p *DeletionPlace) Read(ctx context.Context, s DeletionLister, see func(Deletion)) error {
	after := max(0, p.last.Seq-1)
	for {
		page, err := s.Deletions(ctx, DeletionFilter{After: after})
		if err != nil {
			return err
		}
		if known := p.last; known.Seq > 0 && after == known.Seq-1 {
			if len(page) == 0 || page[0].Seq != known.Seq || page[0].Record.ThreadID != known.Record.ThreadID {
				p.last, after = Deletion{}, 0
				continue
			}
			page = page[1:]
		}
		for _, d := range page {
			p.last = d
			see(d)
		}
		if len(page) < MaxPage-1 {
			return nil
		}
		after = p.last.Seq
	}
}

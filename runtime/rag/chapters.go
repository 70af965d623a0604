package rag

import (
	"cmp"
	"database/sql"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
)

// partChapters is called at the end of each transaction that may have changed vectors: those
// that are open become chapters, and chapters of which little is left become one.
func (w *writer) partChapters() error {
	spaces := slices.SortedFunc(maps.Keys(w.touched), func(a, b space) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.model, b.model))
	})
	for _, s := range spaces {
		if err := w.closeChapters(s); err != nil {
			return err
		}
		if err := w.joinChapters(s); err != nil {
			return err
		}
	}
	return w.forgetEmpty()
}

// closeChapters makes chapters of the vectors that are in none. A space of fewer than one
// takes is compared as a whole.
func (w *writer) closeChapters(s space) error {
	var live, closed int64
	err := w.tx.QueryRowContext(w.ctx, "SELECT live, closed FROM spaces WHERE namespace = ? AND model = ?", s.namespace, s.model).Scan(&live, &closed)
	if errors.Is(err, sql.ErrNoRows) || err == nil && live < w.chapter {
		return nil
	}
	if err != nil {
		return err
	}
	for ; live >= w.chapter; live -= w.chapter {
		var through int64
		err := w.tx.QueryRowContext(w.ctx, "SELECT seq FROM vectors WHERE namespace = ? AND model = ? AND seq > ? ORDER BY seq LIMIT 1 OFFSET ?",
			s.namespace, s.model, closed, w.chapter-1).Scan(&through)
		if err != nil {
			return err
		}
		if err := w.addChapter(s, chapter{after: closed, through: through, live: w.chapter}); err != nil {
			return err
		}
		closed = through
	}
	_, err = w.tx.ExecContext(w.ctx, "UPDATE spaces SET live = ?, closed = ? WHERE namespace = ? AND model = ?", live, closed, s.namespace, s.model)
	return err
}

// chapter is a row of chapters.
type chapter struct {
	after, through, live int64
	stamp                [16]byte
}

func (w *writer) addChapter(s space, c chapter) error {
	w.parted = true
	_, err := w.tx.ExecContext(w.ctx, `INSERT INTO chapters (namespace, model, after, through, live, stamp)
		VALUES (?, ?, ?, ?, ?, lower(hex(randomblob(16))))`, s.namespace, s.model, c.after, c.through, c.live)
	return err
}

func (w *writer) removeChapter(s space, c chapter) error {
	w.parted = true
	_, err := w.tx.ExecContext(w.ctx, "DELETE FROM chapters WHERE namespace = ? AND model = ? AND through = ?", s.namespace, s.model, c.through)
	return err
}

// joinChapters removes empty chapters, and joins those of which a quarter is left with a
// neighbour where the two fit into one.
func (w *writer) joinChapters(s space) error {
	var thin bool
	err := w.tx.QueryRowContext(w.ctx, "SELECT EXISTS (SELECT 1 FROM chapters WHERE namespace = ? AND model = ? AND live < 128)", s.namespace, s.model).Scan(&thin)
	if err != nil || !thin {
		return err
	}
	all, err := readChapters(w.ctx, w.tx, s)
	if err != nil {
		return err
	}
	var kept []chapter // as they are to be
	for _, c := range all {
		if c.live == 0 {
			if err := w.removeChapter(s, c); err != nil {
				return err
			}
			continue
		}
		kept = append(kept, c)
		for last := len(kept) - 1; last > 0 && w.joinable(kept[last-1], kept[last]); last-- {
			joined, err := w.join(s, kept[last-1], kept[last])
			if err != nil {
				return err
			}
			kept = append(kept[:last-1], joined)
		}
	}
	return nil
}

func (w *writer) joinable(a, b chapter) bool {
	return a.live+b.live <= w.chapter && min(a.live, b.live) <= w.chapter/4
}

func (w *writer) join(s space, a, b chapter) (chapter, error) {
	joined := chapter{after: a.after, through: b.through, live: a.live + b.live}
	err := errors.Join(w.removeChapter(s, a), w.removeChapter(s, b))
	if err == nil {
		err = w.addChapter(s, joined)
	}
	return joined, err
}

// forgetEmpty deletes what is left of namespaces and models that have no row any more.
func (w *writer) forgetEmpty() error {
	for s := range w.touched {
		_, err := w.tx.ExecContext(w.ctx, "DELETE FROM spaces WHERE namespace = ?1 AND model = ?2 AND NOT EXISTS (SELECT 1 FROM vectors WHERE namespace = ?1 AND model = ?2)",
			s.namespace, s.model)
		if err != nil {
			return err
		}
		_, err = w.tx.ExecContext(w.ctx, "DELETE FROM models WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM spaces WHERE model = ?1)", s.model)
		if err != nil {
			return err
		}
	}
	_, err := w.tx.ExecContext(w.ctx, "DELETE FROM namespaces WHERE NOT EXISTS (SELECT 1 FROM counts WHERE namespace = namespaces.id)")
	return err
}

// decodeStamp reads the stamp of a chapter.
func decodeStamp(encoded string) (stamp [16]byte, err error) {
	if n, err := hex.Decode(stamp[:], []byte(encoded[:min(len(encoded), 32)])); err != nil || n != len(stamp) || len(encoded) != 32 {
		return stamp, errors.New("a chapter has a damaged stamp")
	}
	return stamp, nil
}

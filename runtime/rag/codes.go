package rag

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/rag/vector"
)

// Kinds of labels of a record.
const (
	labelProject = iota
	labelThread
	labelChain
	labelKind
)

// label stands for a name in a file of codes. A search leaves out records by their labels
// alone, so two names must not have one: it is a part of a cryptographic hash. 0 is that of
// no name.
func label(name string) uint64 {
	if name == "" {
		return 0
	}
	sum := sha256.Sum256([]byte(name))
	return binary.LittleEndian.Uint64(sum[:])
}

// kindField is the field of metadata that has a label.
const kindField = "kind"

// selector selects the records that can be hits by their labels. Fields of metadata without
// a label, and all others as well, are asked for again in the database.
func (s search) selector() func(*vector.Labels) bool {
	anyProject, project := s.Project == AllProjects, label(s.Project)
	var excluded, kinds []uint64
	for _, id := range s.excluded() {
		excluded = append(excluded, label(id))
	}
	for _, kind := range s.Where[kindField] {
		kinds = append(kinds, label(kind))
	}
	return func(l *vector.Labels) bool {
		return (anyProject || l[labelProject] == project) &&
			!slices.Contains(excluded, l[labelThread]) && !slices.Contains(excluded, l[labelChain]) &&
			(len(kinds) == 0 || slices.Contains(kinds, l[labelKind]))
	}
}

// readChapters are the chapters of a space, in the order of their records.
func readChapters(ctx context.Context, tx *sql.Tx, s space) (all []chapter, err error) {
	rows, err := tx.QueryContext(ctx, "SELECT after, through, live, stamp FROM chapters WHERE namespace = ? AND model = ? ORDER BY through", s.namespace, s.model)
	if err != nil {
		return nil, err
	}
	err = each(rows, func(scan func(...any) error) error {
		var c chapter
		var stamp string
		if err := scan(&c.after, &c.through, &c.live, &stamp); err != nil {
			return err
		}
		var err error
		c.stamp, err = decodeStamp(stamp)
		all = append(all, c)
		return err
	})
	return all, err
}

// coder makes files of codes from what stands in the database.
type coder struct {
	ctx       context.Context //nolint:containedctx // lives exactly as long as the transaction
	tx        *sql.Tx
	dir       vector.Dir
	space     space
	dimension int
}

func (c coder) name(of chapter) vector.Name {
	return vector.Name{Stamp: of.stamp, After: of.after, Through: of.through, Dimension: c.dimension}
}

// build reads the vectors of a chapter and writes its file. That it cannot be written makes
// a search slower and nothing else.
func (c coder) build(of chapter) (vector.Chapter, error) {
	rows, err := c.tx.QueryContext(c.ctx, `SELECT v.seq, v.vector, e.project, e.thread_id, e.chain_root,
		ifnull(CASE json_type(e.metadata, '$.kind') WHEN 'text' THEN json_extract(e.metadata, '$.kind') END, '')
		FROM vectors AS v CROSS JOIN entries AS e ON e.id = v.entry
		WHERE v.namespace = ? AND v.model = ? AND v.seq > ? AND v.seq <= ? ORDER BY v.seq`,
		c.space.namespace, c.space.model, of.after, of.through)
	if err != nil {
		return vector.Chapter{}, err
	}
	var records []vector.Record
	err = each(rows, func(scan func(...any) error) error {
		r := vector.Record{Vector: make([]float32, c.dimension)}
		var encoded sql.RawBytes
		var project, thread, chain, kind string
		if err := scan(&r.Seq, &encoded, &project, &thread, &chain, &kind); err != nil {
			return err
		}
		r.Labels = vector.Labels{labelProject: label(project), labelThread: label(thread), labelChain: label(chain), labelKind: label(kind)}
		records = append(records, r)
		return vector.Decode(r.Vector, encoded)
	})
	if err != nil {
		return vector.Chapter{}, err
	}
	name := c.name(of)
	built, err := vector.Build(name, records)
	if err != nil {
		return vector.Chapter{}, err
	}
	_ = c.dir.Save(name, built)
	return vector.Parse(name, built)
}

// updateCodes makes the files of new chapters, so that no search has to wait for it, and
// removes those of former ones. It leaves the rest to the next search or writer.
func (x *Index) updateCodes(ctx context.Context) {
	_ = x.mending(ctx, false, func(db *database) error {
		if db == nil {
			return nil
		}
		// Everything that is listed before the chapters are read is of chapters that are read, or of none.
		dir := x.codes(db)
		listed, err := dir.List()
		if err != nil {
			return err
		}
		live := map[[16]byte]bool{}
		err = db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
			clear(live)
			return eachSpace(ctx, tx, func(s space, dimension int) error {
				c := coder{ctx: ctx, tx: tx, dir: dir, space: s, dimension: dimension}
				chapters, err := readChapters(ctx, tx, s)
				for _, of := range chapters {
					live[of.stamp] = true
					if err == nil && !dir.Has(of.stamp) {
						_, err = c.build(of)
					}
				}
				return err
			})
		})
		if err == nil {
			dir.Sweep(listed, live, x.opts.Now())
		}
		return err
	})
}

// codes is the folder of the files of codes.
func (x *Index) codes(db *database) vector.Dir {
	return vector.Dir{Path: codesDir(db.path), Step: x.opts.step}
}

// eachSpace calls f for every space that has chapters.
func eachSpace(ctx context.Context, tx *sql.Tx, f func(s space, dimension int) error) error {
	rows, err := tx.QueryContext(ctx, `SELECT s.namespace, s.model, m.dimension FROM spaces AS s
		JOIN models AS m ON m.id = s.model WHERE s.closed > 0 ORDER BY s.namespace, s.model`)
	if err != nil {
		return err
	}
	type sized struct {
		space
		dimension int
	}
	var all []sized
	err = each(rows, func(scan func(...any) error) error {
		var s sized
		err := scan(&s.namespace, &s.model, &s.dimension)
		all = append(all, s)
		return err
	})
	for _, s := range all {
		if err == nil {
			err = f(s.space, s.dimension)
		}
	}
	return err
}

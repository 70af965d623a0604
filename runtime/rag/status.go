package rag

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
)

// Status says what is in an index.
type Status struct {
	Path       string // of the file; empty while there is none
	Bytes      int64  // of the file, its log and its files of codes
	Namespaces []NamespaceStatus
}

// NamespaceStatus says what is in one namespace.
type NamespaceStatus struct {
	Name     string
	Rows     int
	Bytes    int64 // of the texts
	Projects int
	NoVector int           // rows that have none
	Models   []ModelStatus // in the order of their names
}

// ModelStatus counts the rows with vectors of one model.
type ModelStatus struct {
	Name            string
	Dimension, Rows int
}

// Stale is how many rows of the namespace have no vector of a model. Dimension 0 means any.
func (s NamespaceStatus) Stale(model string, dimension int) int {
	stale := s.Rows
	for _, m := range s.Models {
		if m.Name == model && (dimension == 0 || dimension == m.Dimension) {
			stale -= m.Rows
		}
	}
	return stale
}

// Status looks at the whole index, the namespaces in the order of their names. It makes no
// file.
func (x *Index) Status(ctx context.Context) (s Status, err error) {
	err = x.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		s = Status{}
		rows, err := tx.QueryContext(ctx, `SELECT n.name, count(DISTINCT c.project), sum(c.entries), sum(c.bytes),
			ifnull(sum(c.entries) FILTER (WHERE c.model = 0), 0)
			FROM counts AS c JOIN namespaces AS n ON n.id = c.namespace GROUP BY n.name ORDER BY n.name`)
		if err != nil {
			return err
		}
		err = each(rows, func(scan func(...any) error) error {
			var n NamespaceStatus
			err := scan(&n.Name, &n.Projects, &n.Rows, &n.Bytes, &n.NoVector)
			s.Namespaces = append(s.Namespaces, n)
			return err
		})
		if err != nil {
			return err
		}
		return s.addModels(ctx, tx)
	})
	if err != nil {
		return Status{}, err
	}
	return s, x.measure(ctx, &s)
}

func (s *Status) addModels(ctx context.Context, tx *sql.Tx) error {
	at := map[string]int{}
	for i, n := range s.Namespaces {
		at[n.Name] = i
	}
	rows, err := tx.QueryContext(ctx, `SELECT n.name, m.name, m.dimension, sum(c.entries)
		FROM counts AS c JOIN namespaces AS n ON n.id = c.namespace JOIN models AS m ON m.id = c.model
		GROUP BY n.name, m.id ORDER BY n.name, m.name, m.dimension`)
	if err != nil {
		return err
	}
	return each(rows, func(scan func(...any) error) error {
		var namespace string
		var m ModelStatus
		err := scan(&namespace, &m.Name, &m.Dimension, &m.Rows)
		n := &s.Namespaces[at[namespace]]
		n.Models = append(n.Models, m)
		return err
	})
}

// measure looks at the files.
func (x *Index) measure(ctx context.Context, s *Status) error {
	db, err := x.open(ctx, false)
	if err != nil || db == nil {
		return err
	}
	s.Path = db.path
	files := []string{db.path, db.path + "-wal"}
	codes, err := filepath.Glob(filepath.Join(codesDir(db.path), "*"))
	if err != nil {
		return err
	}
	for _, name := range append(files, codes...) {
		if info, err := os.Lstat(name); err == nil {
			s.Bytes += info.Size()
		}
	}
	return nil
}

// codesDir is the folder of the files of codes.
func codesDir(path string) string { return path + ".codes" }

package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// Signer returns the fingerprint of the key that signs what threads of a project leave.
// The first to say one decides: own is kept where there is none. A project that is not
// there has none, and own is returned.
func (s *Server) Signer(ctx context.Context, project, own string) (signer string, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	err = s.pool.QueryRow(ctx, "SELECT signer FROM projects WHERE name = $1", project).Scan(&signer)
	if err == nil && signer == "" {
		const first = "UPDATE projects SET signer = CASE signer WHEN '' THEN $2 ELSE signer END WHERE name = $1 RETURNING signer"
		err = s.pool.QueryRow(ctx, first, project, own).Scan(&signer)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return own, nil
	}
	return signer, s.explain(err)
}

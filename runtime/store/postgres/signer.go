package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Signer returns the fingerprint of the key that signs what threads of the project leave.
// The first to say one decides: own is kept where there is none.
func (s *Store) Signer(ctx context.Context, own string) (signer string, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.server.opts.Timeout)
	defer cancel()
	const projects = fleetSchema + ".projects"
	err = s.pool.QueryRow(ctx, "SELECT signer FROM "+projects+" WHERE schema_name = $1", pgx.QueryExecModeExec, s.schema).Scan(&signer)
	if err == nil && signer == "" {
		const first = "UPDATE " + projects + " SET signer = CASE signer WHEN '' THEN $2 ELSE signer END WHERE schema_name = $1 RETURNING signer"
		err = s.pool.QueryRow(ctx, first, s.schema, own).Scan(&signer)
	}
	return signer, s.explained(ctx, err)
}

package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// maxAmount bounds a restored amount, so that sums of them stay integers; it is
// some billions of dollars.
const maxAmount thread.Micros = 1 << 52

// budgets adds the rows and computes the running totals anew.
func (r *restoring) budgets(ctx context.Context, threads []store.Restored) (added int, err error) {
	if err := r.dialect.deferReferences(ctx, r.tx); err != nil {
		return 0, err
	}
	for _, t := range threads {
		if t.Budget == nil {
			continue
		}
		id := t.Record.ThreadID
		n, err := r.insert(ctx, id, func() (sql.Result, error) { return insertBudget(ctx, r.tx, id, *t.Budget) })
		if err != nil {
			return 0, err
		}
		added += n
	}
	for _, column := range []string{"parent_id", "successor_id"} {
		if err := dropDangling(ctx, r.tx, "budgets", column); err != nil {
			return 0, err
		}
	}
	if added > 0 {
		if _, err := sumBudgets(ctx, r.tx, r.dialect); err != nil {
			return 0, err
		}
	}
	return added, r.in.Restored(ctx, r.tx)
}

// insertBudget adds a row whose totals are its own alone.
func insertBudget(ctx context.Context, tx *sql.Tx, id thread.ID, b store.Budget) (sql.Result, error) {
	if b.MaxSpend > maxAmount || b.Own > maxAmount || b.Gone > maxAmount || b.Gone < 0 {
		return nil, fmt.Errorf("budget of %s, %s of it spent, %w", b.MaxSpend, b.Own, errUnfit)
	}
	return tx.ExecContext(ctx, `INSERT INTO budgets (thread_id, parent_id, successor_id, max_spend, actual_spend, own_spend, gone_spend, status, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, CASE WHEN ? = 1 THEN 'active' ELSE 'settled' END, ?, ?) ON CONFLICT (thread_id) DO NOTHING`,
		id, orNull(b.ParentID), orNull(b.Successor), int64(b.MaxSpend), int64(b.Own+b.Gone), int64(b.Own), int64(b.Gone), b.Active,
		millis(b.CreatedAt), millis(b.UpdatedAt))
}

// sumBudgets brings the running totals of every row to what the rows below it
// say, by the rules that stand at their columns. Where nothing was added below
// a row that changes nothing.
func sumBudgets(ctx context.Context, tx *sql.Tx, d Dialect) (changed bool, err error) {
	rows, err := allBudgets(ctx, tx, d.untilCommit())
	if err != nil {
		return false, err
	}
	wrong, circular := miscounted(rows)
	for _, id := range circular {
		if _, err := tx.ExecContext(ctx, "UPDATE budgets SET parent_id = NULL WHERE thread_id = ?", id); err != nil {
			return false, err
		}
	}
	for _, b := range wrong {
		_, err := tx.ExecContext(ctx, "UPDATE budgets SET actual_spend = ?, reserved_spend = ? WHERE thread_id = ?",
			int64(b.Actual), int64(b.Reserved), b.ThreadID)
		if err != nil {
			return false, err
		}
	}
	return len(wrong)+len(circular) > 0, nil
}

// miscounted returns, with the right totals, the rows whose running totals are wrong.
// Circular are the rows that lose their parent, because that is below them.
func miscounted(rows map[thread.ID]*store.Budget) (wrong []store.Budget, circular []thread.ID) {
	order, circular := parentsFirst(rows)
	for _, id := range circular {
		rows[id].ParentID = ""
	}
	totals := make(map[thread.ID]store.Budget, len(rows))
	for id, b := range rows {
		totals[id] = store.Budget{ThreadID: id, Actual: b.Own + b.Gone}
	}
	for i := len(order) - 1; i >= 0; i-- {
		b, sum := rows[order[i]], totals[order[i]]
		if parent, ok := totals[b.ParentID]; ok {
			if b.Active {
				parent.Reserved += b.MaxSpend
			} else {
				parent.Reserved += sum.Reserved
				parent.Actual += sum.Actual
			}
			totals[b.ParentID] = parent
		}
		if sum.Actual != b.Actual || sum.Reserved != b.Reserved {
			wrong = append(wrong, sum)
		}
	}
	return wrong, circular
}

// allBudgets reads every budget; the text after the query keeps them as they are.
func allBudgets(ctx context.Context, q querier, kept string) (map[thread.ID]*store.Budget, error) {
	rows, err := q.QueryContext(ctx, selectBudget+kept)
	list, err := scanEach(rows, err, func(r row) (store.Budget, error) { return scanBudget(r) })
	all := make(map[thread.ID]*store.Budget, len(list))
	for i := range list {
		all[list[i].ThreadID] = &list[i]
	}
	return all, err
}

// parentsFirst orders budgets so that each comes behind its parent. A parent
// that is below its own child is none: circular lists one of each circle.
func parentsFirst(rows map[thread.ID]*store.Budget) (order, circular []thread.ID) {
	const (
		onPath = 1
		placed = 2
	)
	state := make(map[thread.ID]int, len(rows))
	for start := range rows {
		var path []thread.ID
		for id := start; id != "" && state[id] != placed; id = rows[id].ParentID {
			if state[id] == onPath {
				circular = append(circular, path[len(path)-1])
				break
			}
			state[id] = onPath
			path = append(path, id)
		}
		for i := len(path) - 1; i >= 0; i-- {
			state[path[i]] = placed
			order = append(order, path[i])
		}
	}
	return order, circular
}

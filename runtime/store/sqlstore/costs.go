package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// costs is the [store.Costs] of a store.
type costs struct {
	registry Database
	dialect  Dialect
}

// costsSQL reads threads through threads_created where the range has a beginning.
// Beyond it, days knows what was deleted before gone_costs was made, or was in a
// database that is lost. KEY is the column that threads are told apart by, IMPORTED the
// condition that a thread was paid for elsewhere, ?1 the length of a slot, ?2 and ?3 the
// range; all in milliseconds.
const costsSQL = `SELECT slot, k, gone, unknown, sum(threads), sum(errors), sum(cancelled), total(turns), total(input), total(output),
	total(cache_read), total(cache_write), total(spend) FROM (
		SELECT created_at / ?1 AS slot, KEY AS k, 0 AS gone, 0 AS unknown, count(*) AS threads, count(*) FILTER (WHERE status = 'error') AS errors,
			count(*) FILTER (WHERE status = 'cancelled') AS cancelled,
			total(turns) AS turns, total(input_tokens) AS input, total(output_tokens) AS output,
			total(cache_read_tokens) AS cache_read, total(cache_write_tokens) AS cache_write, total(spend) AS spend
		FROM threads WHERE created_at >= ?2 AND created_at < ?3 AND is_set = 0 AND NOT (IMPORTED) GROUP BY 1, 2
		UNION ALL SELECT (day * 86400000 + 43200000) / ?1, KEY, 1, 0, threads, errors, cancelled,
			turns, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, spend
		FROM gone_costs WHERE day * 86400000 + 43200000 >= ?2 AND day * 86400000 + 43200000 < ?3
		UNION ALL SELECT (day * 86400000 + 43200000) / ?1, '', 1, 1, 0, 0, 0, 0, 0, 0, 0, 0,
			gone - (SELECT coalesce(sum(g.spend), 0) FROM gone_costs g WHERE g.day = days.day)
		FROM days WHERE gone > 0 AND day * 86400000 + 43200000 >= ?2 AND day * 86400000 + 43200000 < ?3
			AND gone > (SELECT coalesce(sum(g.spend), 0) FROM gone_costs g WHERE g.day = days.day)
	) AS parts GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4`

// costColumns are the columns that threads are told apart by.
var costColumns = map[store.CostKey]string{store.CostOfAll: "''", store.CostByDirective: "directive", store.CostByModel: "model"}

// query is costsSQL with threads told apart by a column.
func (c costs) query(column string) string {
	return strings.NewReplacer("KEY", column, "IMPORTED", c.dialect.isImported()).Replace(costsSQL)
}

// Costs implements [store.Costs].
func (c costs) Costs(ctx context.Context, q store.CostQuery) (sums []store.CostSum, err error) {
	column, known := costColumns[q.By]
	if !known {
		return nil, fmt.Errorf("sum up costs: %q is not something that threads are told apart by", q.By)
	}
	slot, since, until := int64(math.MaxInt64), int64(0), int64(math.MaxInt64)
	if q.Slot > 0 {
		slot = max(1, q.Slot.Milliseconds())
	}
	if !q.Since.IsZero() {
		since = millis(q.Since)
	}
	if !q.Until.IsZero() {
		until = millis(q.Until)
	}
	query := c.query(column)
	err = c.registry.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		rows, err := db.QueryContext(ctx, query, slot, since, until)
		sums, err = scanEach(rows, err, func(r row) (store.CostSum, error) { return scanCost(r, q.Slot) })
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("sum up costs: %w", err)
	}
	return sums, nil
}

// scanCost reads sums that may be too large for an int64, as those of a damaged database
// can be.
func scanCost(r row, width time.Duration) (s store.CostSum, err error) {
	var slot int64
	var turns, input, output, cacheRead, cacheWrite, spend float64
	err = r.Scan(&slot, &s.Key, &s.Gone, &s.Unknown, &s.Threads, &s.Errors, &s.Cancelled, &turns, &input, &output, &cacheRead, &cacheWrite, &spend)
	if width > 0 {
		s.Slot = fromMillis(slot * width.Milliseconds())
	}
	tokens := func(f float64) int64 { return int64(min(f, float64(thread.MaxTokens))) }
	s.Cost = thread.Cost{
		Turns: int(tokens(turns)), InputTokens: tokens(input), OutputTokens: tokens(output),
		CacheReadTokens: tokens(cacheRead), CacheWriteTokens: tokens(cacheWrite), Spend: thread.Micros(tokens(spend)),
	}
	return s, err
}

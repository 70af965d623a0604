package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// What a million threads a day are at their peak.
const (
	threadsOfDay = 1_000_000
	// peakOfMean: half of a day's threads come in two hours and a half, as where one office
	// works. 58 threads a second.
	peakOfMean = 5
	peak       = peakOfMean * threadsOfDay / 86400.0
	// filledDays is over how long the threads that are there before have come.
	filledDays    = 100
	filledThreads = 1_000_000
)

// serverOfLoad is the configuration of a server of 4 GB, with what is committed on its disk.
var serverOfLoad = map[string]string{
	"shared_buffers": "1GB", "max_wal_size": "4GB", "autovacuum": "on", "max_connections": "200", "checkpoint_timeout": "5min", "track_io_timing": "on",
}

// measureLoad logs what a server does with the load.
func measureLoad(t *testing.T) {
	minutes, err := strconv.ParseFloat(os.Getenv(longtest.SoakVariable), 64)
	if err != nil {
		t.Fatal(err)
	}
	length := strconv.Itoa(max(10, int(minutes*60)))
	l := newLoad(t, serverOfLoad, true)
	t.Logf("%d threads: %d statements on %d connections of their processes", threadsOfLoad, l.statements, l.sessions)
	l.sizes(t)
	l.fill(t)
	for _, percent := range []float64{100, 10, 1} {
		rate := peak * percent / 100 / threadsOfLoad
		l.measure(t, fmt.Sprintf("%g %% of the peak", percent), "-c", "16", "-T", length, "-R", fmt.Sprintf("%.4f", rate))
	}
	l.measure(t, "as fast as it can, 8 clients", "-c", "8", "-T", length)
	l.deletes(t)
}

// sizes says what a thread takes on the disk and in the log.
func (l *load) sizes(t *testing.T) {
	t.Helper()
	const runs = 200
	total := `SELECT string_agg(relname || ' ' || size, ' ' ORDER BY size DESC) FROM (SELECT c.relname, pg_total_relation_size(c.oid) AS size
		FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace) s WHERE size > 65536`
	before := sizesOf(l.ask(t, total))
	at := l.ask(t, "CHECKPOINT; SELECT pg_current_wal_lsn()")
	l.replay(t, "-c", "4", "-t", strconv.Itoa(runs/4))
	after := sizesOf(l.ask(t, total))
	wal, _ := strconv.Atoi(l.ask(t, "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '"+at+"')::bigint"))
	t.Logf("a thread: %d bytes of log (WAL), soon after a checkpoint", wal/runs/threadsOfLoad)
	for table, size := range after {
		if grown := (size - before[table]) / runs / threadsOfLoad; grown > 0 {
			t.Logf("a thread: %d bytes of table %s and its indexes", grown, table)
		}
	}
}

func sizesOf(list string) map[string]int {
	sizes := map[string]int{}
	words := strings.Fields(list)
	for n := 0; n+1 < len(words); n += 2 {
		sizes[words[n]], _ = strconv.Atoi(words[n+1])
	}
	return sizes
}

// fill makes rows of threads that have ended, like those of the recording, over some days.
// Records are made for a tenth: they are found by their key alone.
func (l *load) fill(t *testing.T) {
	t.Helper()
	began := time.Now()
	per := int64(filledDays) * 86_400_000 * threadsOfLoad / filledThreads // milliseconds
	copies := func(table, keys, values string, fewer int) string {
		return fmt.Sprintf(`DO $do$ DECLARE others text; BEGIN
			SELECT string_agg(column_name, ', ') INTO others FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = '%[1]s'
				AND is_identity = 'NO' AND is_generated = 'NEVER' AND column_name <> ALL (string_to_array('%[2]s', ','));
			EXECUTE 'INSERT INTO %[1]s (%[2]s, ' || others || ') SELECT %[3]s, ' || others || ' FROM generate_series(1, %[4]d) g, seed_%[1]s';
		END $do$`, table, keys, values, filledThreads/threadsOfLoad/fewer)
	}
	at := fmt.Sprintf("created_at - g * %d::bigint", per)
	var statements []string
	for _, table := range []string{"threads", "budgets", "record_files", "record_chunks"} {
		statements = append(statements, "CREATE TABLE seed_"+table+" AS SELECT * FROM "+table+" WHERE thread_id IN ("+l.first+")")
	}
	id := "thread_id || ''-f'' || g"
	statements = append(statements,
		copies("threads", "thread_id,created_at,updated_at,completed_at,last_used,parent_id,queue_position",
			id+strings.Repeat(", "+at, 4)+", parent_id || ''-f'' || g, queue_position + 1000000 + 10 * g", 1),
		copies("budgets", "thread_id,parent_id", id+", parent_id || ''-f'' || g", 1), copies("record_files", "thread_id", id, 10), copies("record_chunks", "thread_id", id, 10))
	indexes := l.ask(t, "SELECT coalesce(string_agg(indexdef, '; '), '') FROM pg_indexes WHERE schemaname = current_schema() AND tablename = 'threads' AND indexname <> 'threads_pkey'")
	l.ask(t, `DO $$ DECLARE name text; BEGIN
		FOR name IN SELECT indexname FROM pg_indexes WHERE schemaname = current_schema() AND tablename = 'threads' AND indexname <> 'threads_pkey'
		LOOP EXECUTE 'DROP INDEX ' || name; END LOOP; END $$`)
	for _, statement := range statements {
		l.ask(t, "SET session_replication_role = replica; "+statement) // no triggers
	}
	l.ask(t, indexes) // all at once they are made much faster
	l.ask(t, "VACUUM (ANALYZE)")
	t.Logf("filled to %s threads in %s: %s", l.ask(t, "SELECT count(*) FROM threads"), time.Since(began).Round(time.Second), l.ask(t, "SELECT pg_size_pretty(pg_database_size(current_database()))"))
}

// measure replays the script, and logs how long statements take and what that costs.
func (l *load) measure(t *testing.T, name string, args ...string) {
	t.Helper()
	prefix := filepath.Join(l.cluster.Socket(), "pgbench-"+strconv.FormatInt(time.Now().UnixNano(), 36))
	at, used, began := l.ask(t, "CHECKPOINT; SELECT pg_current_wal_lsn()"), l.cluster.CPU(t), time.Now()
	l.replay(t, slices.Concat([]string{"-l", "--log-prefix", prefix}, args)...)
	took, busy := time.Since(began), l.cluster.CPU(t)-used
	wal, _ := strconv.Atoi(l.ask(t, "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '"+at+"')::bigint"))
	var times []int
	logs, _ := filepath.Glob(prefix + "*")
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			// client, number, time in µs, script, …, and behind all how late it began, which counts.
			fields := strings.Fields(line)
			microseconds, _ := strconv.Atoi(fields[2])
			times = append(times, microseconds)
		}
	}
	if len(times) == 0 {
		t.Logf("%s: nothing came in %s", name, took.Round(time.Second))
		return
	}
	slices.Sort(times)
	quantile := func(q float64) float64 { return float64(times[int(q*float64(len(times)-1))]) / 1000 }
	threads := float64(len(times) * threadsOfLoad)
	t.Logf("%s: %.2f threads/s; %.0f statements/s; a thread's SQL p50 %.0f ms, p99 %.0f ms; a statement p50 %.2f ms, p99 %.2f ms; server %.2f cores, %.1f ms a thread; WAL %.0f bytes a thread",
		name, threads/took.Seconds(), float64(len(times)*l.statements)/took.Seconds(), quantile(.5)/threadsOfLoad, quantile(.99)/threadsOfLoad,
		quantile(.5)/float64(l.statements), quantile(.99)/float64(l.statements), busy.Seconds()/took.Seconds(), busy.Seconds()*1000/threads, float64(wal)/threads)
}

// deletes compares the ways in which old threads go.
func (l *load) deletes(t *testing.T) {
	t.Helper()
	timed := func(what, statement string) {
		at, began := l.ask(t, "SELECT pg_current_wal_lsn()"), time.Now()
		l.ask(t, statement)
		took := time.Since(began)
		t.Logf("%s: %s, %s of WAL", what, took.Round(time.Millisecond), l.ask(t, "SELECT pg_size_pretty(pg_wal_lsn_diff(pg_current_wal_lsn(), '"+at+"'))"))
	}
	l.ask(t, "CREATE TABLE old AS SELECT thread_id FROM threads WHERE thread_id LIKE '%-f%' ORDER BY created_at DESC LIMIT 30000") // those with transcripts
	timed("DELETE of 30000 threads' rows", "DELETE FROM threads WHERE thread_id IN (SELECT thread_id FROM old)")
	timed("DELETE of their budgets", "DELETE FROM budgets WHERE thread_id IN (SELECT thread_id FROM old)")
	timed("DELETE of their records", "DELETE FROM record_files WHERE thread_id IN (SELECT thread_id FROM old)")
	timed("VACUUM behind them", "VACUUM")
	l.ask(t, "CREATE TABLE day AS SELECT c.* FROM record_chunks c LIMIT 120000")
	timed("DROP of a table of as many chunks", "DROP TABLE day")
}

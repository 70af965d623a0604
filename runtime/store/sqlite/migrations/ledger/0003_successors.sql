-- +goose Up

-- The thread that a budget was handed over to. What its children give back goes
-- there. Null in rows of older versions: it goes to the parent.
ALTER TABLE budgets ADD COLUMN successor_id TEXT CHECK (successor_id <> thread_id);
CREATE INDEX budgets_successor ON budgets (successor_id) WHERE successor_id IS NOT NULL;

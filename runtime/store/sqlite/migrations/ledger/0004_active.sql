-- +goose Up

-- The budgets that are not settled, which are few among all.
CREATE INDEX budgets_active ON budgets (thread_id) WHERE status = 'active';

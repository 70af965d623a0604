-- +goose Up

-- The claim of the thread's life that may write here, as the registry has it. Empty
-- until the first write that names one.
ALTER TABLE budgets ADD COLUMN run TEXT NOT NULL DEFAULT '';

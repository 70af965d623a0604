-- +goose Up

-- What the thread's call of a model that is on its way can cost; 0 between calls.
-- A child that is given more meanwhile cannot have it.
ALTER TABLE budgets ADD COLUMN pledged_spend INTEGER NOT NULL DEFAULT 0 CHECK (pledged_spend >= 0);

-- +goose Up

-- What the threads below this one have spent that were deleted; it is part of actual_spend.
ALTER TABLE budgets ADD COLUMN gone_spend INTEGER NOT NULL DEFAULT 0 CHECK (gone_spend >= 0);

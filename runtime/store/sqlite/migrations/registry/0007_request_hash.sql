-- +goose Up

-- The hash of the call that a request key names, parameters included. Null in rows
-- of older versions, which know the item alone.
ALTER TABLE threads ADD COLUMN request_hash TEXT;

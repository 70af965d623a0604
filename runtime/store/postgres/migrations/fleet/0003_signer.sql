-- +goose Up
-- The fingerprint of the key that signs what threads of the project leave; empty: none has
-- said one yet.
ALTER TABLE projects ADD COLUMN signer text COLLATE "C" NOT NULL DEFAULT '';

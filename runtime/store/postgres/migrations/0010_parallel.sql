-- What catches errors begins a subtransaction, which nothing that runs in parallel may.
-- Servers run statements over large tables in parallel, and make their indexes so.

-- +goose Up
ALTER FUNCTION is_json(text) PARALLEL UNSAFE;
ALTER FUNCTION is_object(text) PARALLEL UNSAFE;
ALTER FUNCTION json_text(text, text) PARALLEL UNSAFE;
ALTER FUNCTION json_each(text) PARALLEL UNSAFE;

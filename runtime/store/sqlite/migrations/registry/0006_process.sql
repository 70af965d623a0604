-- +goose Up

-- What tells the process of a thread from another with its number: the start of
-- the kernel, the namespace of process numbers, and when it began by the system's
-- own count. Empty in rows of older versions, which know number and host alone.
ALTER TABLE threads ADD COLUMN boot_id TEXT NOT NULL DEFAULT '';
ALTER TABLE threads ADD COLUMN pid_namespace TEXT NOT NULL DEFAULT '';
ALTER TABLE threads ADD COLUMN pid_started INTEGER NOT NULL DEFAULT 0 CHECK (pid_started >= 0);

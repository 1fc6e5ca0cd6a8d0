-- +goose Up

-- The replicas that hold a lock as long as their connection lasts: one that is here without its lock is dead. A
-- replica of an older version is not here, so that only its leases tell whether it lives.
create table replicas (
    name    text collate "C" primary key,
    dead_at timestamptz -- when another replica found it dead
);

-- +goose Down
drop table replicas;

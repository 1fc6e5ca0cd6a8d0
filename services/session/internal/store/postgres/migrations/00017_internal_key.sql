-- +goose Up

-- The key by which servers on this database know each other; the first one makes it.
create table internal_key (
    only_one boolean primary key default true check (only_one),
    seed     bytea not null
);

-- +goose Down
drop table internal_key;

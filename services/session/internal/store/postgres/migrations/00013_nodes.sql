-- +goose Up

-- Servers that hold workspaces on their own disk and register themselves.
create table nodes (
    name     text collate "C" not null primary key,
    -- Where the others reach its peer listener. Empty: it was stopped.
    address  text not null,
    -- The process that runs under this name.
    instance text not null,
    seen     timestamptz not null
);

-- +goose Down
drop table nodes;

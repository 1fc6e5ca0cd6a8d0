-- +goose Up

-- Where a session's workspace is, and its last copy in the object store. The row
-- outlives the session until its workspace is deleted, and then keeps the
-- generation, with an empty node.
create table places (
    tenant          text not null,
    session         text not null,
    node            text not null,
    generation      integer not null,
    -- Whether the files are still to be brought to the node.
    restoring       integer not null default 0,
    export_turn     text not null default '',
    export_seq      integer not null default 0,
    export_snapshot text not null default '',
    export_time     integer,
    primary key (tenant, session)
);

create index places_by_node on places (node, tenant, session);

-- Nodes that are to get no more workspaces.
create table drains (
    node text not null primary key
);

-- +goose Down
drop table drains;
drop table places;

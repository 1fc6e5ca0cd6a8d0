-- +goose Up

-- Files of users. Their content is in the object store, in parts.
create table files (
    tenant      text not null,
    file        text not null,
    user_id     text not null,
    filename    text not null,
    media_type  text not null,
    size        integer, -- null: not known yet
    received    integer not null default 0,
    promised    blob not null, -- the SHA-256 that the content must have; empty: any
    hash        blob not null, -- the state of the SHA-256 of what has arrived; then the SHA-256
    ready       integer not null default 0,
    ttl         integer not null, -- how long it is kept once it is ready, in seconds; 0: for good
    create_time integer not null,
    expire_time integer,
    primary key (tenant, file)
) without rowid, strict;

create index files_by_user on files (tenant, user_id, create_time desc, file desc);
create index files_by_time on files (tenant, create_time desc, file desc);
create index files_by_end on files (expire_time) where expire_time is not null;

create table file_parts (
    tenant text not null,
    file   text not null,
    place  integer not null, -- the offset of its first byte
    size   integer not null,
    object text not null, -- its key in the object store
    primary key (tenant, file, place)
) without rowid, strict;

-- How many bytes the files of a user have, and those of the tenant (no user).
create table file_usage (
    tenant  text not null,
    user_id text not null,
    bytes   integer not null,
    primary key (tenant, user_id)
) without rowid, strict;

-- +goose Down
drop table file_usage;
drop table file_parts;
drop table files;

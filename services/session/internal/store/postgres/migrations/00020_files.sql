-- +goose Up

-- Files of users. Their content is in the object store, in parts.
create table files (
    tenant      text collate "C" not null,
    file        text collate "C" not null,
    user_id     text collate "C" not null,
    filename    text             not null,
    media_type  text             not null,
    size        bigint, -- null: not known yet
    received    bigint           not null default 0,
    promised    bytea            not null, -- the SHA-256 that the content must have; empty: any
    hash        bytea            not null, -- the state of the SHA-256 of what has arrived; then the SHA-256
    ready       boolean          not null default false,
    ttl         bigint           not null, -- how long it is kept once it is ready, in seconds; 0: for good
    create_time timestamptz      not null,
    expire_time timestamptz,
    primary key (tenant, file)
);

create index files_by_user on files (tenant, user_id, create_time desc, file desc);
create index files_by_time on files (tenant, create_time desc, file desc);
create index files_by_end on files (expire_time) where expire_time is not null;

create table file_parts (
    tenant text collate "C" not null,
    file   text collate "C" not null,
    place  bigint           not null, -- the offset of its first byte
    size   bigint           not null,
    object text             not null, -- its key in the object store
    primary key (tenant, file, place)
);

-- How many bytes the files of a user have, and those of the tenant (no user).
create table file_usage (
    tenant  text collate "C" not null,
    user_id text collate "C" not null,
    bytes   bigint           not null,
    primary key (tenant, user_id)
);

-- +goose Down
drop table file_usage;
drop table file_parts;
drop table files;

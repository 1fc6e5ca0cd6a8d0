-- +goose Up

-- Who changed what. The rows of a tenant are a chain of hashes.
create table audit_entries (
    tenant     text   not null,
    seq        bigint not null,
    time       timestamptz not null,
    user_id    text   not null,
    credential text   not null,
    client     text   not null,
    method     text   not null,
    resource   text   not null,
    request_id text   not null,
    code       text   not null,
    reason     text   not null,
    hash       bytea not null,
    primary key (tenant, seq)
);

create index audit_entries_by_user on audit_entries (tenant, user_id, seq);
create index audit_entries_by_time on audit_entries (tenant, time, seq);

-- The last entry of each tenant. A replica locks the row to continue the chain.
create table audit_heads (
    tenant text   not null primary key,
    seq    bigint not null,
    hash   bytea not null
);

-- +goose Down
drop table audit_heads;
drop table audit_entries;

-- +goose Up
-- Work that outlives the turn that started it. Its id is its call's.
create table operations (
    tenant      text        not null,
    id          text        not null,
    session     text        not null,
    tool        text        not null,
    progress    text        not null,
    state       text        not null check (state in ('running', 'succeeded', 'failed', 'cancelled', 'unknown', 'expired')),
    stopping    boolean     not null default false,
    create_time timestamptz not null,
    end_time    timestamptz,
    expire_time timestamptz not null,
    exit_code   integer,
    head        bytea       not null default '',
    tail        bytea       not null default '',
    bytes       bigint      not null default 0,
    content     bytea,
    owner       text        not null default '',
    claim       bigint      not null default 0,
    lease_until timestamptz,
    read_from   bigint      not null default 0,
    read_to     bigint      not null default 0,
    read_call   text        not null default '',
    primary key (tenant, id)
);

create index operations_by_time on operations (tenant, create_time desc, id desc);
create index operations_by_session on operations (tenant, session, create_time desc, id desc);
create index operations_running on operations (lease_until) where state = 'running';
create index operations_ended on operations (expire_time) where state <> 'running';

-- Requests of clients that were accepted, by idempotency key.
create table requests (
    tenant     text        not null,
    method     text        not null,
    id         text        not null,
    digest     bytea       not null,
    keep_until timestamptz not null,
    primary key (tenant, method, id)
);

create index requests_by_age on requests (keep_until);

-- +goose Down
drop table requests;
drop table operations;

-- +goose Up
-- Work that outlives the turn that started it. Its id is its call's. Times are
-- microseconds since 1970, UTC.
create table operations (
    tenant      text    not null,
    id          text    not null,
    session     text    not null,
    tool        text    not null,
    progress    text    not null,
    state       text    not null check (state in ('running', 'succeeded', 'failed', 'cancelled', 'unknown', 'expired')),
    stopping    integer not null default 0,
    create_time integer not null,
    end_time    integer,
    expire_time integer not null,
    exit_code   integer,
    head        blob    not null default x'',
    tail        blob    not null default x'',
    bytes       integer not null default 0,
    content     blob,
    owner       text    not null default '',
    claim       integer not null default 0,
    lease_until integer not null default 0,
    read_from   integer not null default 0,
    read_to     integer not null default 0,
    read_call   text    not null default '',
    primary key (tenant, id)
) strict;

create index operations_by_time on operations (tenant, create_time desc, id desc);
create index operations_by_session on operations (tenant, session, create_time desc, id desc);
create index operations_running on operations (lease_until) where state = 'running';
create index operations_ended on operations (expire_time) where state <> 'running';

-- Requests of clients that were accepted, by idempotency key.
create table requests (
    tenant     text    not null,
    method     text    not null,
    id         text    not null,
    digest     blob    not null,
    keep_until integer not null,
    primary key (tenant, method, id)
) strict;

create index requests_by_age on requests (keep_until);

-- +goose Down
drop table requests;
drop table operations;

-- +goose Up
-- The highest epoch seen of each session; the highest number for a deleted one.
create table sessions (
    tenant  text    not null,
    session text    not null,
    epoch   integer not null,
    primary key (tenant, session)
) strict, without rowid;

-- The journal. Times are microseconds since 1970, UTC.
create table calls (
    tenant      text    not null,
    call_id     text    not null,
    session     text    not null,
    epoch       integer not null,
    state       text    not null check (state in ('asked', 'delegated', 'started', 'finished', 'cancelled')),
    tool        text    not null,
    digest      text    not null,
    handed      integer not null default 0,
    result      blob,
    create_time integer not null,
    update_time integer not null,
    primary key (tenant, call_id)
) strict;

create index calls_by_session on calls (tenant, session);

-- +goose Down
drop table calls;
drop table sessions;

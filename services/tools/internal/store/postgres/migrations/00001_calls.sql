-- +goose Up
-- The highest epoch seen of each session; the highest number for a deleted one.
create table sessions (
    tenant  text   not null,
    session text   not null,
    epoch   bigint not null,
    primary key (tenant, session)
);

-- The journal.
create table calls (
    tenant      text        not null,
    call_id     text        not null,
    session     text        not null,
    epoch       bigint      not null,
    state       text        not null check (state in ('asked', 'delegated', 'started', 'finished', 'cancelled')),
    tool        text        not null,
    digest      text        not null,
    handed      boolean     not null default false,
    result      bytea,
    create_time timestamptz not null,
    update_time timestamptz not null,
    primary key (tenant, call_id)
);

create index calls_by_session on calls (tenant, session);

-- +goose Down
drop table calls;
drop table sessions;

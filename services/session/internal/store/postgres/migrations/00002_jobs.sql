-- +goose Up

-- Durable work that is no part of a turn's loop. A claim is good until
-- lease_until; due stays what it was, so that who takes over knows for when the
-- work was meant.
create table jobs (
    tenant      text collate "C" not null,
    kind        text collate "C" not null,
    job         text collate "C" not null,
    -- The session with which the row goes; empty: with none.
    session     text collate "C" not null,
    body        bytea,
    due         timestamptz not null,
    attempt     integer     not null default 0,
    claim       text        not null default '',
    lease_until timestamptz,
    primary key (tenant, kind, job)
) with (fillfactor = 70);

create index jobs_by_due on jobs (due);
create index jobs_by_session on jobs (tenant, session) where session <> '';

-- Whether the peers have deleted what they had of the session too. One that an
-- older version has deleted counts as clean: nothing would ever clean it.
alter table tombstones add column clean boolean not null default true;

-- +goose Down
alter table tombstones drop column clean;
drop table jobs;

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

-- What search finds messages by. The words are made in Go and carry a mark of
-- their tenant, so that no tenant's list of places is as long as all tenants'.
alter table messages add column indexed boolean not null default false;
create index messages_unindexed on messages (tenant, session) where not indexed;

create table message_index (
    tenant      text collate "C" not null,
    session     text collate "C" not null,
    message     text collate "C" not null,
    create_time timestamptz      not null,
    words       tsvector         not null,
    primary key (tenant, session, message)
);

create index message_index_words on message_index using gin (words);

-- +goose Down
drop table message_index;
drop index messages_unindexed;
alter table messages drop column indexed;
alter table tombstones drop column clean;
drop table jobs;

-- +goose Up

-- Durable work that is no part of a turn's loop. A claim is good until
-- lease_until; due stays what it was, so that who takes over knows for when the
-- work was meant.
create table jobs (
    tenant      text    not null,
    kind        text    not null,
    job         text    not null,
    -- The session with which the row goes; empty: with none.
    session     text    not null,
    body        blob,
    due         integer not null,
    attempt     integer not null default 0,
    claim       text    not null default '',
    lease_until integer,
    primary key (tenant, kind, job)
) without rowid, strict;

create index jobs_by_due on jobs (due);
create index jobs_by_session on jobs (tenant, session) where session <> '';

-- Whether the peers have deleted what they had of the session too. One that an
-- older version has deleted counts as clean: nothing would ever clean it.
alter table tombstones add column clean integer not null default 1;

-- What search finds messages by. The words are made in Go and carry a mark of
-- their tenant, so that no tenant's list of places is as long as all tenants'.
alter table messages add column indexed integer not null default 0;
create index messages_unindexed on messages (tenant, session) where indexed = 0;

create table message_index (
    id          integer primary key, -- the row of message_words
    tenant      text    not null,
    session     text    not null,
    message     text    not null,
    create_time integer not null,
    unique (tenant, session, message)
) strict;

create virtual table message_words using fts5(words, content='', contentless_delete=1, detail=none, tokenize='ascii');

-- +goose Down
drop table message_words;
drop table message_index;
drop index messages_unindexed;
alter table messages drop column indexed;
alter table tombstones drop column clean;
drop table jobs;

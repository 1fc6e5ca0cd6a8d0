-- +goose Up

-- The key that the caller gave the session, and when it was archived.
alter table sessions add column session_key text not null default '';
alter table sessions add column archive_time integer;
create index sessions_by_key on sessions (tenant, user_id, session_key) where session_key <> '';

-- The labels of sessions, by which lists select. Sessions of before are not in it until
-- their labels change.
create table session_labels (
    tenant  text not null,
    session text not null,
    name    text not null,
    value   text not null,
    primary key (tenant, session, name)
) without rowid, strict;
create index session_labels_by_value on session_labels (tenant, name, value, session);

-- +goose Down
drop table session_labels;
drop index sessions_by_key;
alter table sessions drop column archive_time;
alter table sessions drop column session_key;

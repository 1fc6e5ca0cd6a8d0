-- +goose Up

-- The key that the caller gave the session, and when it was archived.
alter table sessions add column session_key text collate "C" not null default '';
alter table sessions add column archive_time timestamptz;
create index sessions_by_key on sessions (tenant, user_id, session_key) where session_key <> '';

-- The labels of sessions, by which lists select. Sessions of before are not in it until
-- their labels change.
create table session_labels (
    tenant  text collate "C" not null,
    session text collate "C" not null,
    name    text collate "C" not null,
    value   text collate "C" not null,
    primary key (tenant, session, name)
);
create index session_labels_by_value on session_labels (tenant, name, value, session);

-- +goose Down
drop table session_labels;
drop index sessions_by_key;
alter table sessions drop column archive_time;
alter table sessions drop column session_key;

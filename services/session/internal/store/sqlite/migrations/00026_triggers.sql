-- +goose Up

-- Triggers. A delivery names no tenant, so their ids are unique among all tenants.
create table triggers (
    trigger_id  text    not null primary key,
    tenant      text    not null,
    -- The session that it is for, and with which it goes; empty: each delivery makes one.
    session     text    not null,
    user_id     text    not null, -- who made it
    body        blob    not null, -- what was asked for, as a fairlead.session.v1.Trigger
    secret      blob    not null,
    old_secret  blob, -- the one before the last rotation, and until when it is good
    old_until   integer,
    paused      integer not null default 0,
    create_time integer not null,
    last_time   integer,
    last_turn   text    not null default '',
    last_error  text    not null default ''
) without rowid, strict;

create index triggers_by_tenant on triggers (tenant, trigger_id);
create index triggers_by_user on triggers (tenant, user_id, trigger_id);
create index triggers_by_session on triggers (tenant, session) where session <> '';

-- +goose Down
drop table triggers;

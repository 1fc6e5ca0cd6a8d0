-- +goose Up

-- Triggers. A delivery names no tenant, so their ids are unique among all tenants.
create table triggers (
    trigger_id  text collate "C" not null primary key,
    tenant      text collate "C" not null,
    -- The session that it is for, and with which it goes; empty: each delivery makes one.
    session     text collate "C" not null,
    user_id     text collate "C" not null, -- who made it
    body        bytea            not null, -- what was asked for, as a fairlead.session.v1.Trigger
    secret      bytea            not null,
    old_secret  bytea, -- the one before the last rotation, and until when it is good
    old_until   timestamptz,
    paused      boolean          not null default false,
    create_time timestamptz      not null,
    last_time   timestamptz,
    last_turn   text             not null default '',
    last_error  text             not null default ''
);

create index triggers_by_tenant on triggers (tenant, trigger_id);
create index triggers_by_user on triggers (tenant, user_id, trigger_id);
create index triggers_by_session on triggers (tenant, session) where session <> '';

-- +goose Down
drop table triggers;

-- +goose Up

create table schedules (
    tenant text not null,
    session text not null,
    schedule text not null,
    user_name text not null, -- who made it
    body blob not null, -- what was asked for, as a fairlead.session.v1.Schedule
    create_time integer not null,
    paused integer not null default 0,
    due integer, -- the next time; null: none
    last_turn text not null default '',
    last_error text not null default '',
    primary key (tenant, session, schedule)
) without rowid, strict;

create table webhooks (
    tenant text not null,
    webhook text not null,
    -- The session that it is for, and with which it goes; empty: all.
    session text not null,
    url text not null,
    secret blob not null,
    create_time integer not null,
    primary key (tenant, webhook)
) without rowid, strict;

create index webhooks_by_session on webhooks (tenant, session) where session <> '';

-- The history of what webhooks were sent. Each that is pending has a job of the
-- kind webhook with its id.
create table deliveries (
    tenant text not null,
    delivery text not null,
    webhook text not null,
    session text not null,
    turn text not null,
    state text not null default 'PENDING',
    attempts integer not null default 0,
    last_error text not null default '',
    last_status integer not null default 0,
    create_time integer not null,
    next_time   integer,
    primary key (tenant, delivery)
) without rowid, strict;

create index deliveries_by_webhook on deliveries (tenant, webhook, create_time desc, delivery desc);
create index deliveries_by_session on deliveries (tenant, session);
create index deliveries_by_time on deliveries (tenant, create_time);

-- +goose Down
drop table deliveries;
drop table webhooks;
drop table schedules;

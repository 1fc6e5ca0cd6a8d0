-- +goose Up

create table schedules (
    tenant      text collate "C" not null,
    session     text collate "C" not null,
    schedule    text collate "C" not null,
    user_name   text             not null, -- who made it
    body        bytea            not null, -- what was asked for, as a fairlead.session.v1.Schedule
    create_time timestamptz      not null,
    paused      boolean          not null default false,
    due         timestamptz, -- the next time; null: none
    last_turn   text             not null default '',
    last_error  text             not null default '',
    primary key (tenant, session, schedule)
);

create table webhooks (
    tenant      text collate "C" not null,
    webhook     text collate "C" not null,
    -- The session that it is for, and with which it goes; empty: all.
    session     text collate "C" not null,
    url         text             not null,
    secret      bytea            not null,
    create_time timestamptz      not null,
    primary key (tenant, webhook)
);

create index webhooks_by_session on webhooks (tenant, session) where session <> '';

-- The history of what webhooks were sent. Each that is pending has a job of the
-- kind webhook with its id.
create table deliveries (
    tenant      text collate "C" not null,
    delivery    text collate "C" not null,
    webhook     text collate "C" not null,
    session     text collate "C" not null,
    turn        text collate "C" not null,
    state       text             not null default 'PENDING',
    attempts    integer          not null default 0,
    last_error  text             not null default '',
    last_status integer          not null default 0,
    create_time timestamptz      not null,
    next_time   timestamptz,
    primary key (tenant, delivery)
);

create index deliveries_by_webhook on deliveries (tenant, webhook, create_time desc, delivery desc);
create index deliveries_by_session on deliveries (tenant, session);
create index deliveries_by_time on deliveries (tenant, create_time);

-- +goose Down
drop table deliveries;
drop table webhooks;
drop table schedules;

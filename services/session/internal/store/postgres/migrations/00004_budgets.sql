-- +goose Up

-- The ledger of budgets: what was used of each within a window, and what model
-- calls under way may still use. Wall time is in microseconds.
create table budgets (
    tenant                 text collate "C" not null,
    scope                  text collate "C" not null,
    subject                text collate "C" not null,
    -- When the window began, in seconds since the epoch; 0: it never ends.
    window_start           bigint not null,
    -- The session with which the row goes; empty: with none.
    session                text collate "C" not null,
    used_tokens            bigint not null,
    used_cost_nano_usd     bigint not null,
    used_wall_micros       bigint not null,
    reserved_tokens        bigint not null,
    reserved_cost_nano_usd bigint not null,
    primary key (tenant, scope, subject, window_start)
);

create index budgets_by_session on budgets (tenant, session) where session <> '';

-- One row for each budget that an open reservation is charged to.
create table reservations (
    tenant        text collate "C" not null,
    session       text collate "C" not null,
    id            text collate "C" not null,
    scope         text collate "C" not null,
    subject       text collate "C" not null,
    window_start  bigint not null,
    tokens        bigint not null,
    cost_nano_usd bigint not null,
    primary key (tenant, session, id, scope, subject)
);

-- +goose Down
drop table reservations;
drop table budgets;

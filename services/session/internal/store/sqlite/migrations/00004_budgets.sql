-- +goose Up

-- The ledger of budgets: what was used of each within a window, and what model
-- calls under way may still use. Wall time is in microseconds.
create table budgets (
    tenant                 text not null,
    scope                  text not null,
    subject                text not null,
    -- When the window began, in seconds since the epoch; 0: it never ends.
    window_start           integer not null,
    -- The session with which the row goes; empty: with none.
    session                text not null,
    used_tokens            integer not null,
    used_cost_nano_usd     integer not null,
    used_wall_micros       integer not null,
    reserved_tokens        integer not null,
    reserved_cost_nano_usd integer not null,
    primary key (tenant, scope, subject, window_start)
);

create index budgets_by_session on budgets (tenant, session) where session <> '';

-- One row for each budget that an open reservation is charged to.
create table reservations (
    tenant        text not null,
    session       text not null,
    id            text not null,
    scope         text not null,
    subject       text not null,
    window_start  integer not null,
    tokens        integer not null,
    cost_nano_usd integer not null,
    primary key (tenant, session, id, scope, subject)
);

-- +goose Down
drop table reservations;
drop table budgets;

-- +goose Up

-- Ids sort by their bytes, whatever the database's locale. A session's title and
-- labels are a marshaled fairlead.session.v1.Session; the other bodies are the
-- marshaled message of the same name.
create table sessions (
    tenant             text collate "C" not null,
    session            text collate "C" not null,
    agent              text collate "C" not null,
    agent_revision     text        not null,
    body               bytea       not null,
    create_time        timestamptz not null,
    update_time        timestamptz not null,
    last_seq           bigint      not null,
    head               text        not null default '',
    active_turn        text        not null default '',
    input_tokens       bigint      not null default 0,
    output_tokens      bigint      not null default 0,
    cache_read_tokens  bigint      not null default 0,
    cache_write_tokens bigint      not null default 0,
    thinking_tokens    bigint      not null default 0,
    cost_nano_usd      bigint      not null default 0,
    finished_turns     integer     not null default 0,
    next_command       bigint      not null default 1,
    next_turn          bigint      not null default 1,
    -- The lease. lease_until is null while nobody has it.
    epoch              bigint      not null,
    holder             text        not null default '',
    lease_until        timestamptz,
    claims             integer     not null default 0,
    -- Whether a claimer has something to do, and since when.
    runnable           boolean     not null default false,
    ready_time         timestamptz not null,
    primary key (tenant, session)
) with (fillfactor = 70);

create index sessions_by_time on sessions (tenant, create_time desc, session desc);
create index sessions_by_agent on sessions (tenant, agent, create_time desc, session desc);
create index sessions_runnable on sessions (tenant, ready_time) where runnable;

-- The epochs of deleted sessions: a session that is made again under the same id
-- continues them, so that an old holder stays an old holder everywhere.
create table tombstones (
    tenant      text collate "C" not null,
    session     text collate "C" not null,
    epoch       bigint           not null,
    delete_time timestamptz      not null,
    primary key (tenant, session)
);

create table turns (
    tenant  text collate "C" not null,
    session text collate "C" not null,
    turn    text collate "C" not null,
    number  bigint           not null, -- in the order of acceptance
    state   integer          not null, -- fairlead.session.v1.TurnState
    body    bytea            not null,
    run     bytea,
    primary key (tenant, session, turn)
);

create unique index turns_by_number on turns (tenant, session, number);
create index turns_queued on turns (tenant, session) where state = 1;

create table events (
    tenant    text collate "C" not null,
    session   text collate "C" not null,
    seq       bigint           not null,
    first_seq bigint           not null,
    turn      text             not null,
    body      bytea            not null,
    primary key (tenant, session, seq)
);

create table messages (
    tenant  text collate "C" not null,
    session text collate "C" not null,
    message text collate "C" not null,
    parent  text collate "C" not null,
    depth   bigint           not null, -- 1 at the root
    body    bytea            not null,
    primary key (tenant, session, message)
);

create table inbox (
    tenant      text collate "C" not null,
    session     text collate "C" not null,
    id          bigint           not null,
    kind        text             not null,
    turn        text             not null,
    call        text             not null,
    user_name   text             not null,
    body        bytea,
    create_time timestamptz      not null,
    primary key (tenant, session, id)
);

create table pending_calls (
    tenant   text collate "C" not null,
    session  text collate "C" not null,
    call     text collate "C" not null,
    turn     text             not null,
    answer   text             not null,
    digest   text             not null,
    answered boolean          not null default false,
    primary key (tenant, session, call)
);

create table request_ids (
    tenant     text collate "C" not null,
    method     text collate "C" not null,
    parent     text collate "C" not null,
    request_id text collate "C" not null,
    digest     bytea,
    answer     text             not null,
    -- The session with which the row goes; empty when only time ends it.
    session    text collate "C" not null,
    keep_until timestamptz, -- null: as long as the session
    primary key (tenant, method, parent, request_id)
);

create index request_ids_by_session on request_ids (tenant, session) where session <> '';
create index request_ids_by_time on request_ids (keep_until) where keep_until is not null;

create table agent_revisions (
    tenant   text collate "C" not null,
    name     text collate "C" not null,
    revision text collate "C" not null,
    spec     bytea,
    primary key (tenant, name, revision)
);

-- +goose Down
drop table agent_revisions;
drop table request_ids;
drop table pending_calls;
drop table inbox;
drop table messages;
drop table events;
drop table turns;
drop table tombstones;
drop table sessions;

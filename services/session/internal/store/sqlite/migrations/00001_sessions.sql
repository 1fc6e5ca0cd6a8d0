-- +goose Up

-- Times are microseconds since 1970, in UTC. A session's title and labels are a
-- marshaled fairlead.session.v1.Session; the other bodies are the marshaled
-- message of the same name.
create table sessions (
    tenant             text    not null,
    session            text    not null,
    agent              text    not null,
    agent_revision     text    not null,
    body               blob    not null,
    create_time        integer not null,
    update_time        integer not null,
    last_seq           integer not null,
    head               text    not null default '',
    active_turn        text    not null default '',
    input_tokens       integer not null default 0,
    output_tokens      integer not null default 0,
    cache_read_tokens  integer not null default 0,
    cache_write_tokens integer not null default 0,
    thinking_tokens    integer not null default 0,
    cost_nano_usd      integer not null default 0,
    finished_turns     integer not null default 0,
    next_command       integer not null default 1,
    next_turn          integer not null default 1,
    -- The lease. lease_until is null while nobody has it.
    epoch              integer not null,
    holder             text    not null default '',
    lease_until        integer,
    claims             integer not null default 0,
    -- Whether a claimer has something to do, and since when.
    runnable           integer not null default 0,
    ready_time         integer not null,
    primary key (tenant, session)
) without rowid, strict;

create index sessions_by_time on sessions (tenant, create_time desc, session desc);
create index sessions_by_agent on sessions (tenant, agent, create_time desc, session desc);
create index sessions_runnable on sessions (tenant, ready_time) where runnable = 1;

-- The epochs of deleted sessions: a session that is made again under the same id
-- continues them, so that an old holder stays an old holder everywhere.
create table tombstones (
    tenant      text    not null,
    session     text    not null,
    epoch       integer not null,
    delete_time integer not null,
    primary key (tenant, session)
) without rowid, strict;

create table turns (
    tenant  text    not null,
    session text    not null,
    turn    text    not null,
    number  integer not null, -- in the order of acceptance
    state   integer not null, -- fairlead.session.v1.TurnState
    body    blob    not null,
    run     blob,
    primary key (tenant, session, turn)
) strict;

create unique index turns_by_number on turns (tenant, session, number);
create index turns_queued on turns (tenant, session) where state = 1;

create table events (
    tenant    text    not null,
    session   text    not null,
    seq       integer not null,
    first_seq integer not null,
    turn      text    not null,
    body      blob    not null,
    primary key (tenant, session, seq)
) strict;

create table messages (
    tenant  text    not null,
    session text    not null,
    message text    not null,
    parent  text    not null,
    depth   integer not null, -- 1 at the root
    body    blob    not null,
    primary key (tenant, session, message)
) strict;

create table inbox (
    tenant      text    not null,
    session     text    not null,
    id          integer not null,
    kind        text    not null,
    turn        text    not null,
    call        text    not null,
    user_name   text    not null,
    body        blob,
    create_time integer not null,
    primary key (tenant, session, id)
) strict;

create table pending_calls (
    tenant   text    not null,
    session  text    not null,
    call     text    not null,
    turn     text    not null,
    answer   text    not null,
    digest   text    not null,
    answered integer not null default 0,
    primary key (tenant, session, call)
) without rowid, strict;

create table request_ids (
    tenant     text not null,
    method     text not null,
    parent     text not null,
    request_id text not null,
    digest     blob,
    answer     text not null,
    -- The session with which the row goes; empty when only time ends it.
    session    text not null,
    keep_until integer, -- null: as long as the session
    primary key (tenant, method, parent, request_id)
) without rowid, strict;

create index request_ids_by_session on request_ids (tenant, session) where session <> '';
create index request_ids_by_time on request_ids (keep_until) where keep_until is not null;

create table agent_revisions (
    tenant   text not null,
    name     text not null,
    revision text not null,
    spec     blob,
    primary key (tenant, name, revision)
) strict;

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

-- +goose Up

-- Which worker runs the tools of a session. The session itself is the work: a row says who has taken it.
create table work (
    tenant            text not null,
    session           text not null,
    number            integer not null,
    state             text not null,
    worker            text not null,
    metadata          blob not null,
    create_time       integer not null,
    poll_time         integer,
    acknowledge_time  integer,
    start_time        integer,
    heartbeat_time    integer,
    ttl               integer not null,
    lease_end         integer,
    stop_request_time integer,
    stop_time         integer,
    primary key (tenant, session)
) without rowid, strict;

-- +goose Down
drop table work;

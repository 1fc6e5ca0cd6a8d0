-- +goose Up

-- Which worker runs the tools of a session. The session itself is the work: a row says who has taken it.
create table work (
    tenant            text collate "C" not null,
    session           text collate "C" not null,
    number            bigint not null,
    state             text not null,
    worker            text not null,
    metadata          bytea not null,
    create_time       timestamptz not null,
    poll_time         timestamptz,
    acknowledge_time  timestamptz,
    start_time        timestamptz,
    heartbeat_time    timestamptz,
    ttl               bigint not null,
    lease_end         timestamptz,
    stop_request_time timestamptz,
    stop_time         timestamptz,
    primary key (tenant, session)
);

-- +goose Down
drop table work;

-- +goose Up

-- MCP servers of users.
create table user_mcp_servers (
    tenant   text not null,
    user_id  text not null,
    name     text not null,
    body     blob not null,
    set_time integer not null,
    primary key (tenant, user_id, name)
);

-- MCP servers that sessions bring, with the values that their sessions do not show.
create table session_mcp (
    tenant  text not null,
    session text not null,
    servers blob not null,
    primary key (tenant, session)
);

-- +goose Down
drop table session_mcp;
drop table user_mcp_servers;

-- +goose Up

-- MCP servers of users.
create table user_mcp_servers (
    tenant   text collate "C" not null,
    user_id  text collate "C" not null,
    name     text collate "C" not null,
    body     bytea not null,
    set_time timestamptz not null,
    primary key (tenant, user_id, name)
);

-- MCP servers that sessions bring, with the values that their sessions do not show.
create table session_mcp (
    tenant  text collate "C" not null,
    session text collate "C" not null,
    servers bytea not null,
    primary key (tenant, session)
);

-- +goose Down
drop table session_mcp;
drop table user_mcp_servers;

-- +goose Up

-- Logins to MCP servers that have begun, by the digest of their secrets. What is sealed is encrypted.
create table mcp_logins (
    digest blob not null primary key,
    sealed blob not null,
    until  integer not null
);

-- Tokens of users for MCP servers. What is sealed is encrypted.
create table mcp_tokens (
    tenant      text        not null,
    user_id     text        not null,
    resource    text        not null,
    sealed      blob not null,
    update_time integer not null,
    primary key (tenant, user_id, resource)
);

-- +goose Down
drop table mcp_tokens;
drop table mcp_logins;

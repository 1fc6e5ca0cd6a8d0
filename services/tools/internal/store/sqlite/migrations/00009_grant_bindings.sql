-- +goose Up

-- The server and the definition of the tool for which a grant holds. A grant on a tool of an MCP server without them
-- holds for no call.
alter table grants add column binding text not null default '';

-- +goose Down
alter table grants drop column binding;

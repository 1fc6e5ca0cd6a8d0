-- +goose Up

-- Variables of users, for the environment of their commands.
create table user_variables (
    tenant   text collate "C" not null,
    user_id  text collate "C" not null,
    name     text collate "C" not null,
    value    text not null,
    set_time timestamptz not null,
    primary key (tenant, user_id, name)
);

-- +goose Down
drop table user_variables;

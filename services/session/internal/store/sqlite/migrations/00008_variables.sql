-- +goose Up

-- Variables of users, for the environment of their commands.
create table user_variables (
    tenant   text not null,
    user_id  text not null,
    name     text not null,
    value    text not null,
    set_time integer not null,
    primary key (tenant, user_id, name)
) without rowid, strict;

-- +goose Down
drop table user_variables;

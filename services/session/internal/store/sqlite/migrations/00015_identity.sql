-- +goose Up

create table tenants (
    tenant      text not null primary key,
    title       text not null,
    create_time integer not null
) without rowid, strict;

create table users (
    tenant      text    not null,
    user_id     text    not null,
    title       text    not null,
    role        integer not null, -- fairlead.common.v1.Role
    disabled    integer not null default 0,
    create_time integer not null,
    update_time integer not null,
    primary key (tenant, user_id)
) without rowid, strict;

-- Keys of users. A row stays after its key has ended, so that the audit log can name it
-- and the server stays closed.
create table api_keys (
    tenant        text    not null,
    key_id        text    not null,
    hash          blob not null unique, -- the SHA-256 of the secret
    user_id       text    not null,
    title         text    not null,
    role          integer not null,
    scopes        text    not null, -- separated by spaces; empty: not limited
    creator       text    not null,
    create_time   integer not null,
    expire_time   integer,
    revoke_time   integer,
    last_use_time integer,
    primary key (tenant, key_id)
) strict;

create index api_keys_by_user on api_keys (tenant, user_id, create_time desc, key_id desc);
create index api_keys_by_time on api_keys (tenant, create_time desc, key_id desc);

-- What was stored before belongs to this user.
insert into tenants (tenant, title, create_time) values ('default', '', cast(unixepoch('subsec') * 1000000 as integer));
insert into users (tenant, user_id, title, role, create_time, update_time) values ('default', 'default', '', 4, cast(unixepoch('subsec') * 1000000 as integer), cast(unixepoch('subsec') * 1000000 as integer));

-- +goose Down
drop table api_keys;
drop table users;
drop table tenants;

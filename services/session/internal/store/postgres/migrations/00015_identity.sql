-- +goose Up

create table tenants (
    tenant      text not null primary key,
    title       text not null,
    create_time timestamptz not null
);

create table users (
    tenant      text    not null,
    user_id     text    not null,
    title       text    not null,
    role        integer not null, -- fairlead.common.v1.Role
    disabled    boolean not null default false,
    create_time timestamptz not null,
    update_time timestamptz not null,
    primary key (tenant, user_id)
);

-- Keys of users. A row stays after its key has ended, so that the audit log can name it
-- and the server stays closed.
create table api_keys (
    tenant        text    not null,
    key_id        text    not null,
    hash          bytea not null unique, -- the SHA-256 of the secret
    user_id       text    not null,
    title         text    not null,
    role          integer not null,
    scopes        text    not null, -- separated by spaces; empty: not limited
    creator       text    not null,
    create_time   timestamptz not null,
    expire_time   timestamptz,
    revoke_time   timestamptz,
    last_use_time timestamptz,
    primary key (tenant, key_id)
);

create index api_keys_by_user on api_keys (tenant, user_id, create_time desc, key_id desc);
create index api_keys_by_time on api_keys (tenant, create_time desc, key_id desc);

-- What was stored before belongs to this user.
insert into tenants (tenant, title, create_time) values ('default', '', clock_timestamp());
insert into users (tenant, user_id, title, role, create_time, update_time) values ('default', 'default', '', 4, clock_timestamp(), clock_timestamp());

-- +goose Down
drop table api_keys;
drop table users;
drop table tenants;

-- +goose Up

-- Permission profiles that were made by the API; the rules are a PermissionRules message.
create table profiles (
    tenant      text        not null,
    id          text        not null,
    description text        not null,
    rules       bytea       not null,
    etag        text        not null,
    create_time timestamptz not null,
    update_time timestamptz not null,
    primary key (tenant, id)
);

-- What people allowed for longer than one call. The session is empty for a grant that
-- holds in all of the user's sessions. The id follows from the other columns.
create table grants (
    tenant      text        not null,
    id          text        not null,
    user_id     text        not null,
    session     text        not null,
    profile     text        not null,
    rule        text        not null,
    approver    text        not null,
    call_id     text        not null,
    create_time timestamptz not null,
    primary key (tenant, id)
);

create index grants_by_user on grants (tenant, user_id, session, create_time desc, id desc);
create index grants_by_time on grants (tenant, create_time desc, id desc);
create index grants_by_session on grants (tenant, session) where session <> '';

-- Counts the changes of a tenant's profiles and grants, so that replicas know when what
-- they have read of them is old.
create table permission_versions (
    tenant  text   not null primary key,
    version bigint not null
);

-- The arguments that a person put in the place of the model's.
alter table calls add column arguments bytea;

-- +goose Down
alter table calls drop column arguments;
drop table permission_versions;
drop table grants;
drop table profiles;

-- +goose Up

-- Agents that were made by the API, at their newest version.
create table agents (
    tenant       text not null,
    name         text not null, -- agents/{agent}
    version      integer not null,
    create_time  integer not null,
    archive_time integer,
    primary key (tenant, name)
) without rowid, strict;

-- Versions never change. Their specs are in agent_revisions.
create table agent_versions (
    tenant        text not null,
    name          text not null,
    version       integer not null,
    revision      text not null,
    user_name     text not null,
    restored_from integer not null,
    create_time   integer not null,
    primary key (tenant, name, version)
) without rowid, strict;

-- +goose Down
drop table agent_versions;
drop table agents;

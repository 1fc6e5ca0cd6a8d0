-- +goose Up

-- Agents that were made by the API, at their newest version.
create table agents (
    tenant       text collate "C" not null,
    name         text collate "C" not null, -- agents/{agent}
    version      integer not null,
    create_time  timestamptz not null,
    archive_time timestamptz,
    primary key (tenant, name)
);

-- Versions never change. Their specs are in agent_revisions.
create table agent_versions (
    tenant        text collate "C" not null,
    name          text collate "C" not null,
    version       integer not null,
    revision      text collate "C" not null,
    user_name     text not null,
    restored_from integer not null,
    create_time   timestamptz not null,
    primary key (tenant, name, version)
);

-- +goose Down
drop table agent_versions;
drop table agents;

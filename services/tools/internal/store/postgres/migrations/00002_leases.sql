-- +goose Up
-- A started call belongs to a replica: by a lease, which it renews, and a claim,
-- which counts the owners.
alter table calls
    add column owner       text        not null default '',
    add column address     text        not null default '',
    add column claim       bigint      not null default 0,
    add column lease_until timestamptz,
    add column begun       boolean     not null default false;

create index calls_started_by_owner on calls (owner) where state = 'started';

-- +goose Down
drop index calls_started_by_owner;
alter table calls drop column owner, drop column address, drop column claim, drop column lease_until, drop column begun;

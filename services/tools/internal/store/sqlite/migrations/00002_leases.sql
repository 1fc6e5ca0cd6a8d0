-- +goose Up
-- A started call belongs to a replica: by a lease, which it renews, and a claim,
-- which counts the owners.
alter table calls add column owner text not null default '';
alter table calls add column address text not null default '';
alter table calls add column claim integer not null default 0;
alter table calls add column lease_until integer not null default 0;
alter table calls add column begun integer not null default 0;

create index calls_started_by_owner on calls (owner) where state = 'started';

-- +goose Down
drop index calls_started_by_owner;
alter table calls drop column owner;
alter table calls drop column address;
alter table calls drop column claim;
alter table calls drop column lease_until;
alter table calls drop column begun;

-- +goose Up

-- The key that made a key; empty: no key did. A key is revoked with its parent.
alter table api_keys add column parent text not null default '';
create index api_keys_by_parent on api_keys (tenant, parent);

-- +goose Down
drop index api_keys_by_parent;
alter table api_keys drop column parent;

-- +goose Up

-- The user as whom the call ran that started the operation. Operations of before belong
-- to the only user of before.
alter table operations add column user_id text not null default 'default';
create index operations_by_user on operations (tenant, user_id, create_time desc, id desc);

-- +goose Down
drop index operations_by_user;
alter table operations drop column user_id;

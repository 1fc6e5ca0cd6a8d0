-- +goose Up

-- The user to whom the session belongs. Sessions of before belong to the only user of
-- before.
alter table sessions add column user_id text not null default 'default';
create index sessions_by_user on sessions (tenant, user_id, create_time desc, session desc);

-- +goose Down
drop index sessions_by_user;
alter table sessions drop column user_id;

-- +goose Up

-- The user to whom the deleted session belonged: for a day no other user gets its id.
alter table tombstones add column user_id text not null default '';

-- +goose Down
alter table tombstones drop column user_id;

-- +goose Up

-- The turn that takes in the message of a turn that steers.
alter table inbox add column target text not null default '';

-- +goose Down
alter table inbox drop column target;

-- +goose Up

-- The secret before the last rotation, and until when it signs beside the new one.
alter table webhooks add column old_secret blob;
alter table webhooks add column old_until integer;

-- +goose Down
alter table webhooks drop column old_until;
alter table webhooks drop column old_secret;

-- +goose Up

-- Whether tools and sandbox are still to be told of the epoch: the session was taken
-- over from a holder that fell silent and may wake up.
alter table sessions add column fence_due integer not null default 0;

-- +goose Down
alter table sessions drop column fence_due;

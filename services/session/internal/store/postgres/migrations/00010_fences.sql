-- +goose Up

-- Whether tools and sandbox are still to be told of the epoch: the session was taken
-- over from a holder that fell silent and may wake up.
alter table sessions add column fence_due boolean not null default false;

-- +goose Down
alter table sessions drop column fence_due;

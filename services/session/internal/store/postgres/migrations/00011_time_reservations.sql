-- +goose Up

-- Wall time is reserved like tokens and cost. A replica of an older version reserves none.
alter table budgets add column reserved_wall_micros bigint not null default 0;
alter table reservations add column wall_micros bigint not null default 0;

-- +goose Down
alter table reservations drop column wall_micros;
alter table budgets drop column reserved_wall_micros;

-- +goose Up

-- The tokens of limits that replicas share: each leases some and spends them itself.
create table token_buckets (
    tenant      text collate "C" not null,
    bucket      text collate "C" not null,
    tokens      double precision not null,
    refill_time timestamptz      not null,
    primary key (tenant, bucket)
);

-- Unfinished turns are counted for limits.
create index turns_unfinished on turns (tenant, session) where state in (1, 2, 3);

-- +goose Down
drop index turns_unfinished;
drop table token_buckets;

-- +goose Up

-- The uploads of a user that have not ended are counted.
create index files_open on files (tenant, user_id) where not ready;

-- An upload no longer counts with its announced size: it counts with what has arrived and one part of 8 MiB.
update file_usage set bytes = bytes - (
    select coalesce(sum(size - least(size, received + 8388608)), 0) from files
    where files.tenant = file_usage.tenant and (file_usage.user_id = '' or files.user_id = file_usage.user_id)
        and not ready and size is not null);

-- +goose Down
update file_usage set bytes = bytes + (
    select coalesce(sum(size - least(size, received + 8388608)), 0) from files
    where files.tenant = file_usage.tenant and (file_usage.user_id = '' or files.user_id = file_usage.user_id)
        and not ready and size is not null);
drop index files_open;

-- +goose Up

-- What waits for a person as people see it (a marshaled PendingApproval), the user of its
-- session, and since when it waits. Calls of clients' tools, and calls that a version of
-- before parked, have none.
alter table pending_calls add column user_name text collate "C" not null default '';
alter table pending_calls add column create_time timestamptz not null default clock_timestamp();
alter table pending_calls add column shown bytea;
create index pending_calls_by_time on pending_calls (tenant, create_time, session, call) where shown is not null and not answered;
create index pending_calls_by_user on pending_calls (tenant, user_name, create_time, session, call) where shown is not null and not answered;

-- +goose Down
drop index pending_calls_by_user;
drop index pending_calls_by_time;
alter table pending_calls drop column shown;
alter table pending_calls drop column create_time;
alter table pending_calls drop column user_name;

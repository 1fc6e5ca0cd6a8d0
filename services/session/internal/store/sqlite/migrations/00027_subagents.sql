-- +goose Up

-- Of a subagent's session: the session of the call that it works for, the session at the top,
-- and how many sessions lie between, this one included.
alter table sessions add column parent text not null default '';
alter table sessions add column root text not null default '';
alter table sessions add column depth integer not null default 0;
create index sessions_by_root on sessions (tenant, root, parent, create_time desc, session desc) where root <> '';

-- +goose Down
drop index sessions_by_root;
alter table sessions drop column depth;
alter table sessions drop column root;
alter table sessions drop column parent;

-- +goose Up

-- On which sandbox node a call runs, and the generation of the workspace's place
-- there; 0: nobody said. A session has the highest generation that was asked for.
alter table calls add column node text not null default '';
alter table calls add column generation bigint not null default 0;
alter table operations add column node text not null default '';
alter table operations add column generation bigint not null default 0;
alter table sessions add column generation bigint not null default 0;

-- +goose Down
alter table sessions drop column generation;
alter table operations drop column generation;
alter table operations drop column node;
alter table calls drop column generation;
alter table calls drop column node;

-- +goose Up

-- Which processes are attached to a replica as a runtime. A row counts until its time; its replica writes it anew.
create table attachments (
    tenant    text collate "C" not null,
    runtime   text collate "C" not null,
    replica   text collate "C" not null,
    processes integer          not null,
    places    integer          not null,
    turns     integer          not null,
    until     timestamptz      not null,
    primary key (tenant, runtime, replica)
);

-- Until its time, a session that was passed on is claimed by one replica alone.
alter table sessions add column passed_to text collate "C" not null default '';
alter table sessions add column passed_until timestamptz;

-- +goose Down
alter table sessions drop column passed_until;
alter table sessions drop column passed_to;
drop table attachments;

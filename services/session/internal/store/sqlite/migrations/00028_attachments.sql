-- +goose Up

-- Which processes are attached to a replica as a runtime. A row counts until its time; its replica writes it anew.
create table attachments (
    tenant    text             not null,
    runtime   text             not null,
    replica   text             not null,
    processes integer          not null,
    places    integer          not null,
    turns     integer          not null,
    until     integer          not null,
    primary key (tenant, runtime, replica)
);

-- Until its time, a session that was passed on is claimed by one replica alone.
alter table sessions add column passed_to text not null default '';
alter table sessions add column passed_until integer;

-- +goose Down
alter table sessions drop column passed_until;
alter table sessions drop column passed_to;
drop table attachments;

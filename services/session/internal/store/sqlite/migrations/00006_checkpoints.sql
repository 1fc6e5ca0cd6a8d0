-- +goose Up

create table checkpoints (
    tenant text not null,
    session text not null,
    checkpoint text not null,
    seq integer not null, -- of its checkpoint.created: the order
    body blob not null, -- a fairlead.session.v1.Checkpoint
    primary key (tenant, session, checkpoint)
) without rowid, strict;

create index checkpoints_by_seq on checkpoints (tenant, session, seq);

-- +goose Down
drop table checkpoints;

-- +goose Up

create table checkpoints (
    tenant     text collate "C" not null,
    session    text collate "C" not null,
    checkpoint text collate "C" not null,
    seq        bigint           not null, -- of its checkpoint.created: the order
    body       bytea            not null, -- a fairlead.session.v1.Checkpoint
    primary key (tenant, session, checkpoint)
);

create index checkpoints_by_seq on checkpoints (tenant, session, seq);

-- +goose Down
drop table checkpoints;

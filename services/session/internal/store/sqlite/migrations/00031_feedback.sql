-- +goose Up

-- What people think of answers. Ids grow with time.
create table feedback (
    tenant text not null,
    session text not null,
    feedback text not null,
    body blob not null, -- a fairlead.session.v1.Feedback
    primary key (tenant, session, feedback)
) without rowid, strict;

-- +goose Down
drop table feedback;

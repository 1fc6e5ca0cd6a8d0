-- +goose Up

-- What people think of answers. Ids grow with time.
create table feedback (
    tenant   text collate "C" not null,
    session  text collate "C" not null,
    feedback text collate "C" not null,
    body     bytea            not null, -- a fairlead.session.v1.Feedback
    primary key (tenant, session, feedback)
);

-- +goose Down
drop table feedback;

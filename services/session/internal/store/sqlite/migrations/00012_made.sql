-- +goose Up

-- The last generation in which the workspace is known to have been made: that of the
-- place, if it was made there.
alter table places add column made integer not null default 0;
-- From which node the workspace comes, and why it left it, while its files are still to
-- be brought to the place of a generation: who does not know of this leaves it as it was.
alter table places add column left_node text not null default '';
alter table places add column left_why text not null default '';
alter table places add column left_for integer not null default 0;

-- What was exported was made.
update places set made = generation where export_turn <> '' and restoring = 0;

-- +goose Down
alter table places drop column left_for;
alter table places drop column left_why;
alter table places drop column left_node;
alter table places drop column made;

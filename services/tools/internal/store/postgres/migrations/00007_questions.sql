-- +goose Up

-- What a tool asked a person, and what the call needs to go on with the answer. An asked
-- call with a question waits for the answer, one without for an approval.
alter table calls add column question bytea;

-- +goose Down
alter table calls drop column question;

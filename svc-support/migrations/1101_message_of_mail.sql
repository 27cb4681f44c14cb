-- no-transaction
-- The message that a delivery is about.
create index concurrently if not exists message_of_mail on support.message (account_id, mail_id) where mail_id is not null;

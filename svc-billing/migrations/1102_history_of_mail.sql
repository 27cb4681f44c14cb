-- no-transaction
-- The document that a delivery is about.
create index concurrently if not exists document_history_of_mail
    on billing.document_history (account_id, mail_id) where mail_id is not null;

-- What the scans look for.
create index document_draft on billing.document (account_id, created_at) where not is_final;
create index document_unanswered on billing.document (account_id, sent_at)
    where kind = 'quote' and sent_at is not null and accepted_at is null;
-- The latest invoice of each client.
create index document_invoiced on billing.document (account_id, client_id, invoice_date desc, id desc)
    where kind = 'invoice' and is_final and credits is null and client_id is not null;
create index subscription_ending on billing.subscription (account_id, end_date)
    where status = 'active' and end_date is not null;

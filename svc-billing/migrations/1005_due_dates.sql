-- Lists by due date, in either direction, and what falls due between two days: without it every document of the account is
-- read for a page.
create index document_due on billing.document (account_id, kind, due_date desc, id desc);

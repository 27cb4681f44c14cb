-- Whether the caller chose the dates of a draft: those that nobody chose become the day on which it becomes final. Of drafts
-- that an older program made nobody knows, and they keep theirs.
alter table billing.document add column invoice_date_given boolean not null default true;
alter table billing.document add column due_date_given boolean not null default true;
-- What was paid when the document became final, within its total: its e-invoice says so for ever.
alter table billing.document add column prepaid_amount numeric(14, 2) not null default 0;

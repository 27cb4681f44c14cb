-- Final documents whose PDF is still to be made. A row is written with the document and deleted when its PDF is recorded, so
-- that nothing has to be searched for what is missing.
create table billing.pdf_pending (
    account_id uuid not null,
    document_id uuid not null,
    due_at timestamptz not null,
    -- How often it has failed.
    failures integer not null default 0,
    constraint pdf_pending_key primary key (account_id, document_id),
    constraint pdf_pending_of foreign key (account_id, document_id)
        references billing.document (account_id, id) on delete cascade
);

create index pdf_pending_due on billing.pdf_pending (account_id, due_at);

-- no-transaction
-- What a search looks through, in any case.
create index concurrently if not exists task_search
    on work.task using gin (account_id, title public.gin_trgm_ops);

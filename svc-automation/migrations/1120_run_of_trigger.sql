-- no-transaction
-- Pages of the runs with a type of trigger, whose total is counted.
create index concurrently if not exists run_of_trigger
    on automation.run (account_id, trigger_type, created_at desc, id desc);

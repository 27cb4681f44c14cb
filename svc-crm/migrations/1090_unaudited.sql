-- Tables whose changes alone leave no entry in the audit log.
comment on table crm.setup is 'unaudited: which accounts have their defaults';
comment on table crm.deal_step is 'unaudited: a log itself';
comment on table crm.accepted_quote is 'unaudited: what was heard';

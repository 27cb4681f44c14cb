-- Tables whose changes alone leave no entry in the audit log.
comment on table event is 'unaudited: what was heard';

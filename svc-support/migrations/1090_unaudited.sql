-- Tables whose changes alone leave no entry in the audit log.
comment on table support.mail_route is 'unaudited: follows from the domains';

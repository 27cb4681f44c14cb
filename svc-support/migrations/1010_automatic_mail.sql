-- What no person wrote: 'program' (an automatic reply, a bounce, a flow), 'list' (a mailing list, a person perhaps), or ''.
alter table support.message add column automatic text not null default '';

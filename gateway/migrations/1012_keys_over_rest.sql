-- Keys can be listed and revoked by the account itself: as every record of a list they have an id, and a time of their last
-- change. Keys that the release before makes while it runs beside this one have neither: their id follows from the public one.
alter table api_key add column id uuid;
alter table api_key add column updated_at timestamptz;
update api_key set id = md5(public_id)::uuid, updated_at = coalesce(revoked_at, created_at);

-- Keys that have every scope have those too that came with this release.
update api_key
set scopes = '{automation.read,automation.write,deals.read,deals.write,files.read,files.write,invoices.read,invoices.write,
               keys.read,keys.write,notes.read,notes.write,products.read,products.write,projects.read,projects.write,
               relations.read,relations.write,settings.read,settings.write,tasks.read,tasks.write,tickets.read,
               tickets.write,webhooks.read,webhooks.write}'
where revoked_at is null
  and scopes @> '{invoices.read,invoices.write,relations.read,relations.write,tickets.read,tickets.write,deals.read,
                  deals.write,projects.read,projects.write,products.read,products.write,tasks.read,tasks.write,notes.read,
                  notes.write,files.read,files.write,automation.read,automation.write,webhooks.write}';

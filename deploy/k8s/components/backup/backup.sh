#!/bin/bash
# The CronJob `backup`: a dump of all schemas in one snapshot, as deploy/backup makes it. How to put one back:
# "Backup and restore" in docs/operating.md.
#
# DATABASE_URL_FILE: the file with the address of a role that may read everything (pg_read_all_data)
# BACKUP_DIR: the volume, default /backup; BACKUP_KEEP: how many are kept, default 14
# It cannot be deploy/backup itself: a component may not use files from outside its folder.
set -euo pipefail

folder="${BACKUP_DIR:-/backup}"
keep="${BACKUP_KEEP:-14}"
url="$(cat "${DATABASE_URL_FILE:?names the file with the address of the database}")"
name="$(date -u +%Y-%m-%dT%H%M%SZ)"

# What a run that was cut short has left is in nobody's way.
rm -rf "$folder"/*.partial
mkdir "$folder/$name.partial"
# The password by environment: a command line can be read by everyone on the machine.
if [[ "$url" =~ ^(postgres(ql)?://[^:@/]+):([^@%]*)(@.+)$ ]]; then
    export PGPASSWORD="${BASH_REMATCH[3]}"
    url="${BASH_REMATCH[1]}${BASH_REMATCH[4]}"
fi
pg_dump -Fc -Z 6 -d "$url" -f "$folder/$name.partial/database.dump"
# Readable to its end, or it is no backup.
pg_restore -l "$folder/$name.partial/database.dump" >/dev/null
(
    cd "$folder/$name.partial"
    echo "# Made by the CronJob backup, $(date -u +%Y-%m-%dT%H:%M:%SZ), $(pg_dump --version)"
    cksum database.dump
) >"$folder/$name.partial/manifest.new"
mv "$folder/$name.partial/manifest.new" "$folder/$name.partial/manifest"
sync
# It gets its name when it is complete: half a backup must not look like one.
mv "$folder/$name.partial" "$folder/$name"
echo "Made $folder/$name, $(du -h "$folder/$name/database.dump" | cut -f 1)"

# Only now, so that a failure never costs an older one.
find "$folder" -mindepth 1 -maxdepth 1 -type d -name '20*Z' | sort -r | tail -n "+$((keep + 1))" |
    while read -r old; do
        rm -rf "$old"
        echo "Removed $old"
    done

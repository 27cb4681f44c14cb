#!/usr/bin/env python3
"""Keeps a copy of an account in a SQLite file, over GET /v1/changes. Only the standard library is used.

    mirror.py COPY.db            copies everything, then follows what changes until it is stopped
    mirror.py COPY.db --once     stops when everything is copied

Environment: BASE_URL, for example http://127.0.0.1:7700, and API_KEY. The copy has the kinds that the key may read; a key
with other scopes needs a new copy.

    table record: kind, id, version, body    the record as the API shows it, byte for byte
    table state:  cursor                     where to go on

It can be stopped at any moment, by SIGKILL too, and goes on where it was. Other programs can read the file meanwhile.
"""

import argparse
import http.client
import json
import os
import random
import re
import sqlite3
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

# The most changes of one answer, and the most seconds that an answer waits for one; the API allows no more.
LIMIT = 500
WAIT = 25
# Longer than an answer may wait.
TIMEOUT = 60
# Seconds between attempts, growing from the first to the second.
PAUSES = (0.5, 30)
# What passes: too many requests, and gateways or services that are being restarted.
TEMPORARY = (429, 502, 503, 504)


class CursorExpired(Exception):
    """The log ends before the cursor: the data was restored from a backup."""


# --- the API ------------------------------------------------------------------------------------------------------


def changes(cursor, wait):
    """The text of the next page. Repeats what fails until there is an answer."""
    query = urllib.parse.urlencode({"after": cursor, "limit": LIMIT, "wait": wait})
    url, key = os.environ["BASE_URL"], os.environ["API_KEY"]
    request = urllib.request.Request(f"{url}/v1/changes?{query}", headers={"Authorization": f"Bearer {key}"})
    pause = PAUSES[0]
    while True:
        asked = ""
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                return answer.read().decode().strip()
        except urllib.error.HTTPError as error:
            if error.code == 410:
                raise CursorExpired from error
            if error.code not in TEMPORARY:
                sys.exit(f"{request.full_url} was answered with {error.code}: {error.read().decode()}")
            reason, asked = f"{error.code} {error.reason}", error.headers.get("Retry-After", "")
        except (OSError, http.client.HTTPException) as error:
            reason = repr(error)
        # Not at the same moment as everyone else who was turned away.
        seconds = max(float(asked if asked.isdigit() else 0), pause * random.uniform(0.5, 1))
        say(f"no answer ({reason}), again in {seconds:.1f} s")
        time.sleep(seconds)
        pause = min(pause * 2, PAUSES[1])


# --- JSON, byte for byte ------------------------------------------------------------------------------------------
#
# json.loads makes 12.5 of 12.50, so a record that was parsed and written again is not what the API sent. These two cut
# the texts of values out of a text and leave them as they are.

DECODER = json.JSONDecoder()
BLANK = re.compile(r"[ \t\r\n]*")


def after_blank(text, at):
    return BLANK.match(text, at).end()


def members(text):
    """The members of an object, by name, each as its text."""
    found, at = {}, after_blank(text, 1)
    while text[at] != "}":
        name, at = DECODER.raw_decode(text, at)
        begin = after_blank(text, after_blank(text, at) + 1)
        _, end = DECODER.raw_decode(text, begin)
        found[name] = text[begin:end]
        at = after_comma(text, end)
    return found


def elements(text):
    """The elements of an array, each as its text."""
    found, at = [], after_blank(text, 1)
    while text[at] != "]":
        _, end = DECODER.raw_decode(text, at)
        found.append(text[at:end])
        at = after_comma(text, end)
    return found


def after_comma(text, at):
    at = after_blank(text, at)
    return after_blank(text, at + 1) if text[at] == "," else at


# --- the copy -----------------------------------------------------------------------------------------------------


def open_copy(path):
    copy = sqlite3.connect(path)
    with copy:
        copy.execute("begin immediate")
        copy.execute(
            "create table if not exists record (kind text, id text, version integer not null, body text not null, "
            "primary key (kind, id)) without rowid"
        )
        copy.execute("create table if not exists state (cursor text not null)")
        copy.execute("insert into state select '' where not exists (select * from state)")
    return copy


def cursor_of(copy):
    return copy.execute("select cursor from state").fetchone()[0]


def store(copy, before, answer):
    """Stores a page with the cursor after it, in one transaction: whatever ends this program, the two agree. Returns the
    number of changes and whether there are more right now."""
    answer = members(answer)
    meta, page = json.loads(answer["meta"]), elements(answer["data"])
    with copy:
        # Two programs with one copy would overwrite new records with old ones.
        moved = copy.execute("update state set cursor = ? where cursor = ?", (meta["cursor"], before))
        if moved.rowcount != 1:
            sys.exit("another program keeps this copy too")
        for change in map(members, page):
            kind, id, version = (json.loads(change[name]) for name in ("kind", "id", "version"))
            if change["record"] == "null":
                copy.execute("delete from record where kind = ? and id = ?", (kind, id))
            else:
                row = (kind, id, version, change["record"])
                copy.execute("insert or replace into record (kind, id, version, body) values (?, ?, ?, ?)", row)
    return len(page), meta["more"]


def empty(copy):
    with copy:
        copy.execute("delete from record")
        copy.execute("update state set cursor = ''")


def follow(copy, once):
    """Copies what has changed; unless `once`, goes on for ever. Returns the number of changes."""
    total, waiting = 0, False
    while True:
        before = cursor_of(copy)
        try:
            count, more = store(copy, before, changes(before, 0 if once else WAIT))
        except CursorExpired:
            # What came after the backup is gone, and nobody says what that was.
            say("the data of the API is older than this copy: it is emptied and copied anew")
            empty(copy)
            continue
        total += count
        if count:
            say(f"{count} changes, {total} since the start")
        if not more and not waiting:
            records = copy.execute("select count(*) from record").fetchone()[0]
            say(f"the copy is complete: {records} records" + ("" if once else "; waiting for changes"))
        if not more and once:
            return total
        waiting = not more


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("copy", metavar="COPY.db", help="made when it is missing")
    options.add_argument("--once", action="store_true", help="stop when everything is copied")
    options = options.parse_args()
    for variable in ("BASE_URL", "API_KEY"):
        if not os.environ.get(variable):
            sys.exit(f"{variable} must be set (--help)")
    try:
        follow(open_copy(options.copy), options.once)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()

// Finds operations, fields, parameters, events, errors and guides as one types. The index is made when it is first needed.

import { merged } from "./document.js";
import { headings, plain, slug } from "./markdown.js";

export const MAX_RESULTS = 40;
const MAX_DEPTH = 6;
/** What a kind is worth, when the words fit equally well. */
const WORTH = { operation: 26, guide: 22, area: 20, event: 16, error: 14, section: 12, parameter: 4, field: 2 };

/** Entries: `{kind, title, about, href, text}`. */
export function indexOf(content) {
  const entries = [];
  const put = (kind, title, about, href, text = "") => {
    entries.push({ kind, title, about, href, words: wordsOf(title), text: `${title} ${about} ${text}`.toLowerCase() });
  };
  for (const guide of content.guides) {
    put("guide", guide.title, "Guide", `/docs/guides/${guide.name}`, plain(guide.text));
    for (const part of headings(guide.text)) put("section", part.title, guide.title, `/docs/guides/${guide.name}#${part.id}`, "");
  }
  const introduction = content.document.info.description ?? "";
  for (const part of headings(introduction)) put("section", part.title, "Overview", `/docs#${part.id}`, sectionText(introduction, part.id));
  for (const area of content.areas) {
    put("area", area.name, `${area.operations.length} operations`, `/docs/areas/${encodeURIComponent(area.name)}`, plain(area.description));
  }
  for (const operation of content.operations) {
    const text = `${operation.id} ${operation.area} ${operation.scope} ${plain(operation.description)}`;
    put("operation", operation.summary, `${operation.method} ${operation.path}`, `/docs/operations/${operation.id}`, text);
  }
  for (const event of content.events) {
    put("event", event.name, plain(event.description), `/docs/events/${event.name}`, event.area);
  }
  for (const problem of content.problems) {
    put("error", problem.code, `${problem.status} ${problem.title}`, `/problems/${problem.code}`, problem.detail);
  }
  fieldsOf(content, put);
  return entries;
}

/** The entries that have every word, best first. */
export function find(entries, query) {
  const words = query.toLowerCase().split(/[\s/?&=,]+/).map((word) => word.replace(/^\{|\}$/g, "")).filter(Boolean);
  if (!words.length) return [];
  const whole = query.trim().toLowerCase();
  const found = [];
  for (const entry of entries) {
    const points = score(entry, words, whole);
    if (points > 0) found.push({ entry, points });
  }
  return found.sort((one, other) => other.points - one.points || one.entry.title.length - other.entry.title.length)
    .map(({ entry }) => entry);
}

function score(entry, words, whole) {
  const title = entry.title.toLowerCase();
  let points = WORTH[entry.kind];
  // Many fields begin with the same words; the operations that are about them come first.
  const isPart = entry.kind === "field" || entry.kind === "parameter";
  if (title === whole) points += isPart ? 80 : 200;
  else if (title.startsWith(whole)) points += isPart ? 8 : 60;
  if (isPart && !entry.about.startsWith("answer")) points += 1;
  // The path of an operation, as it is called: `post /v1/invoices`.
  const about = entry.about.toLowerCase();
  if (entry.kind === "operation" && (about === whole || about.endsWith(` ${whole}`))) points += 150;
  for (const word of words) {
    if (entry.words.includes(word)) points += 30;
    else if (entry.words.some((one) => one.startsWith(word))) points += 22;
    else if (title.includes(word)) points += 14;
    else if (about.includes(word)) points += 10;
    else if (entry.text.includes(word)) points += 2;
    else return 0;
  }
  // Of two that have the words, the one that says less besides.
  return points - Math.min(8, entry.words.length / 2);
}

const wordsOf = (title) => title.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean);

/** What stands below a heading. */
function sectionText(text, id) {
  const parts = text.split(/^## /m).slice(1);
  return plain(parts.find((part) => slug(part.split("\n")[0]) === id) ?? "");
}

/** Parameters and fields, each once for all operations that share it. */
function fieldsOf(content, put) {
  const found = new Map();
  const note = (kind, name, owner, where, anchor, text, operation) => {
    const key = `${kind} ${owner} ${name}`;
    const entry = found.get(key) ?? { kind, name, where, href: `/docs/operations/${operation.id}#${anchor}`, text, used: [] };
    entry.used.push(operation.summary);
    found.set(key, entry);
  };
  for (const operation of content.operations) {
    for (const parameter of operation.parameters) {
      const text = plain(parameter.description);
      note("parameter", parameter.name, `${parameter.in} ${text}`, parameter.in, `${parameter.in}-${parameter.name}`, text, operation);
    }
    if (operation.body?.schema) {
      walk(content.document, operation.body.schema, [], "", (path, owner, text) => {
        note("field", path.join("."), `body ${owner}`, "body", `body-${path.join(".")}`, text, operation);
      });
    }
    const answer = operation.answers.find(({ status }) => status.startsWith("2"));
    const schema = answer?.content?.["application/json"]?.schema;
    if (schema) {
      walk(content.document, schema, [], "", (path, owner, text) => {
        if (path.length > 1) note("field", path.slice(1).join("."), `answer ${owner}`, "answer", `answer-${path.join(".")}`, text, operation);
      });
    }
  }
  for (const { kind, name, where, href, text, used } of found.values()) {
    const others = used.length > 1 ? ` and ${used.length - 1} more` : "";
    put(kind, name, `${where} of: ${used[0]}${others}`, href, text);
  }
}

/** Calls `visit` with the path of each field, the schema it belongs to, and its text. */
function walk(document, schema, above, owner, visit) {
  const whole = merged(document, schema);
  const named = (schema.$ref ?? owner).split("/").at(-1);
  for (const [name, property] of Object.entries(whole.properties ?? {})) {
    const path = [...above, name];
    const found = merged(document, property);
    visit(path, named, `${plain(found.description)} ${(found.enum ?? []).join(" ")}`);
    if (path.length < MAX_DEPTH) walk(document, found.items ?? property, path, `${named}.${name}`, visit);
  }
}

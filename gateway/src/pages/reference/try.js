// The card that sends a request from here.

import { add, announce, copyButton, freshId, h, show } from "./dom.js";
import { highlighted, pretty } from "./code.js";
import { merged } from "./document.js";
import { key, setKey } from "./key.js";
import { freshKey, remember } from "./request.js";

let isOpen = false;
const TIMEOUT_MS = 60_000;
const MAX_SHOWN = 200_000;

export function tryCard(content, request) {
  const { operation } = request;
  const answer = h("div", { class: "reply" });
  const fields = h("div", { class: "inputs" });
  const fill = () => show(fields, inputs(content, request));
  fill();
  const send = (dryRun) => run(request, answer, dryRun);
  const canRehearse = operation.parameters.some(({ name }) => name === "Dry-Run");
  const form = h("form", { novalidate: true, onsubmit: (event) => { event.preventDefault(); send(false); } },
    !operation.isPublic && keyInput(),
    fields,
    h("div", { class: "buttons" },
      h("button", { class: "send", type: "submit" }, "Send"),
      canRehearse && h("button", { type: "button", onclick: () => send(true) }, "Try without effect"),
      needsIds(content, request).length > 0 && h("button", { type: "button", onclick: () => useOwnIds(content, request, fill, answer) }, "Use my newest records")));
  const details = h("details", { class: "card try", open: isOpen }, h("summary", null, h("h2", null, "Try it")), form, answer);
  details.addEventListener("toggle", () => { isOpen = details.open; });
  return details;
}

function labelled(label, input, note) {
  const id = freshId("input");
  input.id = id;
  return h("div", { class: "input" }, h("label", { for: id }, label), input, note && h("p", null, note));
}

function keyInput() {
  const input = h("input", { type: "password", autocomplete: "off", spellcheck: "false", value: key(), class: "key" });
  input.addEventListener("input", () => setKey(input.value));
  return labelled("API key", input, "Kept in this tab only, until it is closed.");
}

function inputs(content, request) {
  const { operation } = request;
  const of = (place) => operation.parameters.filter((one) => one.in === place && one.name !== "Dry-Run");
  const path = of("path").map((one) => parameterInput(content, request, one));
  const optional = [...of("query"), ...of("header")].filter((one) => !one.required && one.name !== "Idempotency-Key");
  const needed = [...of("query"), ...of("header")].filter((one) => one.required || one.name === "Idempotency-Key");
  const found = [path, needed.map((one) => parameterInput(content, request, one))];
  if (optional.length) {
    found.push(h("details", null, h("summary", null, optional.length === 1 ? "1 optional parameter" : `${optional.length} optional parameters`), optional.map((one) => parameterInput(content, request, one))));
  }
  if (request.fileType) {
    const file = h("input", { type: "file" });
    file.addEventListener("change", () => { request.file = file.files[0] ?? null; });
    found.push(labelled("File", file));
  } else if (operation.body) {
    const rows = Math.min(18, request.body.split("\n").length + 1);
    const area = h("textarea", { rows: String(rows), spellcheck: "false", autocomplete: "off" });
    area.value = request.body;
    area.addEventListener("input", () => request.setBody(area.value));
    found.push(labelled("Body", area));
  }
  return found;
}

function parameterInput(content, request, parameter) {
  const { name, in: place } = parameter;
  const schema = merged(content.document, parameter.schema ?? {});
  const choices = schema.enum ?? (schema.type === "boolean" ? [true, false] : null);
  const value = request.values[place][name] ?? "";
  const input = choices
    ? h("select", null, h("option", { value: "" }, ""), choices.map((one) => h("option", { value: String(one), selected: String(one) === value }, String(one))))
    : h("input", { type: "text", autocomplete: "off", spellcheck: "false", value });
  input.addEventListener("input", () => request.set(place, name, input.value));
  return labelled(h("code", null, name), input);
}

/** Where the request names records: the path parameters, and the fields of the body that refer to one. */
function needsIds(content, request) {
  const lists = new Set(content.operations.filter(({ method }) => method === "GET").map(({ path }) => path));
  const found = [];
  for (const { in: place, name } of request.operation.parameters) {
    const list = request.listFor(name);
    if (place === "path" && lists.has(list)) found.push({ name, list, put: (id) => { request.values.path[name] = id; } });
  }
  for (const [name] of references(request.body)) {
    const list = `/v1/${name.slice(0, -3)}s`;
    if (lists.has(list)) found.push({ name, list, put: (id) => { request.body = request.body.replace(new RegExp(`("${name}": )"[^"]*"`), `$1"${id}"`); } });
  }
  return found;
}

const references = (body) => [...body.matchAll(/"([a-z_]+_id)": "[0-9a-f-]{36}"/g)].map((match) => [match[1]]);

/** Puts the newest records of the account in the place of the example's. */
async function useOwnIds(content, request, fill, shown) {
  for (const { list, name, put } of needsIds(content, request)) {
    const path = list.replace(/\{([^}]+)\}/g, (_, variable) => encodeURIComponent(request.values.path[variable] ?? ""));
    const answer = await ask(path, { headers: { Authorization: `Bearer ${key()}`, Accept: "application/json" } });
    const body = await answer.response?.json().catch(() => null);
    const id = [body?.data].flat()[0]?.id;
    if (!answer.response?.ok || !id) {
      const why = answer.error ?? body?.detail ?? `There is none in ${path} yet.`;
      show(shown, h("p", { class: "failed" }, `${name}: ${why}`));
      return;
    }
    put(id);
  }
  request.changed();
  fill();
  announce("The newest records are filled in");
}

async function ask(path, options) {
  try {
    return { response: await fetch(path, { ...options, signal: AbortSignal.timeout(TIMEOUT_MS), credentials: "omit", cache: "no-store" }) };
  } catch (error) {
    return { error: error.name === "TimeoutError" ? "There was no answer within a minute." : `No answer: ${error.message}` };
  }
}

async function run(request, shown, dryRun) {
  const { operation } = request;
  const headers = Object.fromEntries(request.headers());
  if (!operation.isPublic && key()) headers.Authorization = `Bearer ${key()}`;
  if (request.file?.type) headers["Content-Type"] = request.file.type;
  if (dryRun) headers["Dry-Run"] = "true";
  headers.Accept = "application/json";
  show(shown, h("p", null, "Waiting for the answer…"));
  const started = performance.now();
  const { response, error } = await ask(request.path(), { method: operation.method, headers, body: request.file ?? (request.body || undefined) });
  if (error) {
    show(shown, h("p", { class: "failed" }, error));
    announce(error);
    return;
  }
  const took = Math.round(performance.now() - started);
  show(shown, h("h3", null, "Answer ", h("span", { class: response.ok ? "status" : "status failed" }, `${response.status}`), ` in ${took} ms`));
  await content(request, response, shown);
  add(shown, [h("details", null, h("summary", null, "Headers"), h("pre", { tabindex: "0", role: "group", "aria-label": "Headers of the answer" },
    h("code", null, [...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n"))))]);
  announce(`Answer ${response.status}`);
  // The next request is another one.
  if (response.ok && !dryRun && request.values.header["Idempotency-Key"]) request.set("header", "Idempotency-Key", freshKey());
}

async function content(request, response, shown) {
  const type = response.headers.get("content-type") ?? "";
  if (!/json|text|xml/.test(type)) {
    const blob = await response.blob();
    if (blob.size) add(shown, [h("p", null, h("a", { href: URL.createObjectURL(blob), download: "answer" }, `Save the file (${blob.size.toLocaleString("en")} bytes)`))]);
    return;
  }
  const text = await response.text();
  const isJson = type.includes("json");
  const laidOut = isJson ? pretty(text) : text;
  const cut = laidOut.length > MAX_SHOWN ? `${laidOut.slice(0, MAX_SHOWN)}\n…` : laidOut;
  add(shown, [h("div", { class: "code" },
    h("pre", { tabindex: "0", role: "group", "aria-label": "Body of the answer" }, h("code", null, highlighted(cut, isJson ? "json" : ""))),
    copyButton(() => text, "the answer"))]);
  if (!isJson || !response.ok || response.headers.get("dry-run")) return;
  const list = request.operation.path.replace(/\/\{[^}]+\}$/, "");
  try {
    remember(list, JSON.parse(text).data);
  } catch {
    // Not an answer with a record.
  }
}

// A request that is being put together: what the form holds, and what the code shows.

import { pretty } from "./code.js";
import { proposedBody } from "./document.js";

const SESSION_IDS = "ids";

/** Ids that answers have shown in this tab, by the path of their list. */
function knownIds() {
  try {
    return JSON.parse(sessionStorage.getItem(SESSION_IDS) ?? "{}");
  } catch {
    return {};
  }
}

/** Keeps the id of the newest record that an answer has. */
export function remember(list, data) {
  const record = Array.isArray(data) ? data[0] : data;
  if (typeof record?.id !== "string") return;
  try {
    sessionStorage.setItem(SESSION_IDS, JSON.stringify({ ...knownIds(), [list]: record.id }));
  } catch {
    // Without storage ids are typed.
  }
}

export class Request {
  /** Parameters by place and name. */
  values = { path: {}, query: {}, header: {} };
  /** The file that was chosen, where the body is one. */
  file = null;
  listeners = [];

  constructor(document, operation) {
    this.operation = operation;
    const ids = knownIds();
    for (const { in: place, name, example } of operation.parameters) {
      if (place === "path") this.values.path[name] = ids[listOf(operation.path, name)] ?? example ?? "";
    }
    if (operation.parameters.some(({ name }) => name === "Idempotency-Key")) this.values.header["Idempotency-Key"] = freshKey();
    const proposed = proposedBody(document, operation.body);
    this.fileType = proposed === undefined ? fileTypeOf(operation.body) : "";
    // Bytes have no name of their own.
    if (this.fileType && operation.parameters.some(({ in: place, name }) => place === "query" && name === "name")) this.values.query.name = "file";
    this.body = proposed === undefined ? "" : pretty(JSON.stringify(proposed));
    const success = operation.answers.find(({ status }) => status.startsWith("2"));
    const type = Object.keys(success?.content ?? {})[0];
    this.answers = type === undefined ? "nothing" : type.includes("json") ? "json" : "file";
  }

  /** The list whose records a path parameter names, such as `/v1/clients` for the `id` of `/v1/clients/{id}/links`. */
  listFor(name) {
    return listOf(this.operation.path, name);
  }

  set(place, name, value) {
    this.values[place][name] = value;
    this.changed();
  }

  setBody(text) {
    this.body = text;
    this.changed();
  }

  changed() {
    for (const listener of this.listeners) listener();
  }

  path() {
    const path = this.operation.path.replace(/\{([^}]+)\}/g, (variable, name) => {
      return encodeURIComponent(this.values.path[name] ?? "") || variable;
    });
    const query = new URLSearchParams(Object.entries(this.values.query).filter(([, value]) => value !== "")).toString();
    return query ? `${path}?${query}` : path;
  }

  headers() {
    const own = Object.entries(this.values.header).filter(([, value]) => value !== "");
    const type = this.fileType || this.operation.body?.type;
    return (this.body || this.fileType) && type ? [["Content-Type", type], ...own] : own;
  }

  /** For the samples. */
  described() {
    const { method, isPublic } = this.operation;
    const { body, answers, fileType } = this;
    return { method, url: location.origin + this.path(), headers: this.headers(), body, hasFile: fileType !== "", isPublic, answers };
  }
}

/**
 * The type of a body that is a file: bytes, or a text that somebody writes. It goes as it is, which every language can do;
 * a form of several parts is another way to send the same.
 */
function fileTypeOf(body) {
  const types = (body?.types ?? []).filter((type) => !/\*|multipart|urlencoded/.test(type));
  if (!body?.required && !types.length) return "";
  return types.find((type) => type.includes("yaml")) ?? types[0] ?? "application/octet-stream";
}

const listOf = (path, name) => path.slice(0, path.indexOf(`/{${name}}`));

export function freshKey() {
  // Only secure contexts have randomUUID.
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

// The part of Markdown that the document and the guides use, as elements: paragraphs, headings, lists, tables, code,
// emphasis and links. Everything else is text.

import { copyButton, h } from "./dom.js";
import { highlighted } from "./code.js";

const LINK = /^(https?:\/\/|mailto:|\/(?!\/)|#)/;
const INLINE = /`([^`]+)`|\[((?:`[^`]*`|[^\]`])+)\]\(([^()\s]+)\)|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*/g;

/**
 * The blocks of a text. `options.link` may name the page of a piece of code, for example of an event; `options.level` is
 * what a heading with one sign becomes; `options.base` stands where the text names the host.
 */
export function blocks(text, options = {}) {
  return read((text ?? "").replace(/\r/g, "").split("\n"), options);
}

/** A text without paragraphs. */
export function inline(text, options = {}) {
  const parts = [];
  let from = 0;
  for (const match of text.matchAll(INLINE)) {
    parts.push(text.slice(from, match.index));
    from = match.index + match[0].length;
    const [, code, label, address, strong, emphasis] = match;
    if (code !== undefined) parts.push(codeOf(code, options));
    else if (strong !== undefined) parts.push(h("strong", null, inline(strong, options)));
    else if (emphasis !== undefined) parts.push(h("em", null, inline(emphasis, options)));
    else if (LINK.test(address)) parts.push(h("a", { href: address }, inline(label, { ...options, link: undefined })));
    else parts.push(match[0]);
  }
  parts.push(text.slice(from));
  return parts.filter((part) => part !== "");
}

/** The words of a text, without its signs. */
export function plain(text) {
  return (text ?? "").replace(/```\w*\n?/g, "").replace(/\[([^\]]+)\]\([^()\s]+\)/g, "$1").replace(/[`*]/g, "");
}

/** The headings of the second level, with their ids. */
export function headings(text) {
  return text.split("```").filter((_, index) => index % 2 === 0).join("\n").split("\n")
    .filter((line) => line.startsWith("## "))
    .map((line) => ({ title: plain(line.slice(3)), id: slug(line.slice(3)) }));
}

export function slug(text) {
  return plain(text).toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
}

function codeOf(code, options) {
  const element = h("code", null, code);
  const address = options.link?.(code);
  return address ? h("a", { href: address }, element) : element;
}

function read(lines, options) {
  const found = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    if (!line.trim()) {
      at += 1;
    } else if (line.startsWith("```")) {
      const end = lines.indexOf("```", at + 1);
      const upTo = end < 0 ? lines.length : end;
      found.push(codeBlock(lines.slice(at + 1, upTo).join("\n"), line.slice(3), options));
      at = upTo + 1;
    } else if (/^#{1,4} /.test(line)) {
      const depth = line.indexOf(" ");
      const title = line.slice(depth + 1);
      found.push(h(`h${Math.min(6, depth + (options.level ?? 1) - 1)}`, { id: slug(title) }, inline(title, options)));
      at += 1;
    } else if (line.startsWith("|")) {
      const end = endOf(lines, at, (next) => next.startsWith("|"));
      found.push(table(lines.slice(at, end), options));
      at = end;
    } else if (marker(line)) {
      const end = endOf(lines, at, (next) => marker(next) || /^\s+\S/.test(next));
      found.push(list(lines.slice(at, end), options));
      at = end;
    } else {
      const end = endOf(lines, at, (next) => next.trim() && !/^(```|\||#{1,4} )/.test(next) && !marker(next));
      found.push(h("p", null, inline(lines.slice(at, end).join(" "), options)));
      at = end;
    }
  }
  return found;
}

function endOf(lines, from, belongs) {
  let end = from + 1;
  while (end < lines.length && belongs(lines[end])) end += 1;
  return end;
}

const marker = (line) => /^([-*]|\d+\.) /.exec(line)?.[0];

function list(lines, options) {
  const items = [];
  for (const line of lines) {
    const sign = marker(line);
    if (sign) items.push([line.slice(sign.length)]);
    else items.at(-1).push(line.replace(/^ {1,3}/, ""));
  }
  const content = (item) => {
    const found = read(item, options);
    return found.length === 1 && found[0].localName === "p" ? [...found[0].childNodes] : found;
  };
  return h(/^\d/.test(lines[0]) ? "ol" : "ul", null, items.map((item) => h("li", null, content(item))));
}

function table(lines, options) {
  const cells = (line) => line.slice(1, line.lastIndexOf("|")).split("|").map((cell) => cell.trim());
  const [head, , ...rows] = lines.map(cells);
  const body = rows.map((row) => h("tr", null, row.map((cell) => h("td", null, inline(cell, options)))));
  const names = head.map((cell) => h("th", { scope: "col" }, inline(cell, options)));
  return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table" },
    h("table", null, h("thead", null, h("tr", null, names)), h("tbody", null, body)));
}

/** Code with a button to copy it. */
export function codeBlock(code, language, options = {}) {
  const text = options.base ? code.replaceAll("https://your-host", options.base) : code;
  const label = options.label ?? "code";
  return h("div", { class: "code" },
    h("pre", { tabindex: "0", "aria-label": label, role: "group" }, h("code", null, highlighted(text, language))),
    copyButton(() => text, label));
}

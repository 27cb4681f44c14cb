// The page of one operation.

import { copyButton, h } from "./dom.js";
import { fieldList, parameterList } from "./fields.js";
import { blocks, inline } from "./markdown.js";
import { highlighted, pretty } from "./code.js";
import { Request } from "./request.js";
import { requestCard } from "./samples_card.js";
import { tryCard } from "./try.js";

export function operationPage(content, operation) {
  const context = { document: content.document, link: content.link, isInput: true };
  const answer = operation.answers.find(({ status }) => status.startsWith("2")) ?? operation.answers[0];
  const request = new Request(content.document, operation);
  const parameters = (place, title) => {
    const some = operation.parameters.filter((one) => one.in === place);
    return some.length > 0 && section(title, `${place}-parameters`, parameterList(context, some, place));
  };
  const text = h("div", { class: "text" },
    h("p", { class: "crumb" }, h("a", { href: `/docs/areas/${encodeURIComponent(operation.area)}` }, operation.area)),
    h("h1", { tabindex: "-1" }, operation.summary),
    h("p", { class: "address" }, method(operation.method), " ", h("code", null, pathParts(operation.path))),
    blocks(operation.description, context),
    needs(operation),
    h("p", { class: "jump" }, h("a", { href: "#code" }, "Code, and trying it")),
    parameters("path", "Path"),
    parameters("query", "Query"),
    operation.body && section("Body", "body", bodyPart(context, operation)),
    parameters("header", "Headers"),
    section("Answer", "answer", answerPart({ ...context, isInput: false }, answer)),
    section("Errors", "errors", errorsPart(content, context, operation)));
  const cards = h("div", { class: "cards", id: "code" },
    requestCard(request),
    tryCard(content, request),
    answerCard(answer));
  return h("article", { class: "operation" }, text, cards);
}

export function method(name) {
  return h("span", { class: `method method-${name.toLowerCase()}` }, name);
}

function pathParts(path) {
  return path.split(/(\{[^}]+\})/).flatMap((part) => {
    if (part.startsWith("{")) return [h("var", null, part)];
    return part.split(/(?<=\/)/).flatMap((piece) => [piece, h("wbr")]);
  });
}

function section(title, id, ...children) {
  // No field has such an id: those of fields begin with where they belong.
  const own = `section-${id}`;
  return h("section", { "aria-labelledby": own }, h("h2", { id: own }, h("a", { class: "anchor", href: `#${own}` }, title)), children);
}

function needs({ isPublic, scopes }) {
  const together = (some) => some.map((scope, index) => [index ? " and " : "", h("code", null, scope)]);
  const named = scopes.filter((some) => some.length);
  const key = isPublic ? "No key: the address itself is the secret."
    : !named.length ? "Any valid API key."
      : ["An API key with the scope ", named.map((some, index) => [index ? ", or " : "", together(some)]), "."];
  return h("p", { class: "needs" }, h("strong", null, "Needs "), key);
}

function bodyPart(context, operation) {
  const { type, types, description, schema } = operation.body;
  const fields = schema && fieldList(context, schema, "body");
  return [h("p", { class: "media" }, types.map((one, index) => [index ? " or " : "", h("code", null, one)]), operation.body.required ? ", required" : ""),
    blocks(description, context),
    fields ?? (type.includes("json") ? h("p", null, "An object.") : h("p", null, "The bytes as they are."))];
}

function answerPart(context, answer) {
  const content = Object.entries(answer?.content ?? {});
  const headers = Object.entries(answer?.headers ?? {});
  const parts = content.map(([type, { schema }]) => [
    h("p", { class: "media" }, h("code", null, answer.status), " with ", h("code", null, type)),
    schema && fieldList(context, schema, "answer")]);
  const shown = headers.map(([name, header]) => {
    const { description, schema } = resolve(context, header);
    return { name, in: "answer-header", description, schema };
  });
  return [
    parts.length ? parts : h("p", null, h("code", null, answer?.status ?? ""), ". There is no body."),
    shown.length > 0 && h("details", null, h("summary", null, `${shown.length} headers of the answer`), parameterList(context, shown, "answer-header"))];
}

function resolve(context, value) {
  return value.$ref ? value.$ref.slice(2).split("/").reduce((at, name) => at?.[name], context.document) ?? {} : value;
}

function errorsPart(content, context, operation) {
  const rows = operation.answers.filter(({ status }) => status >= "300").flatMap((answer) => {
    const examples = Object.values(answer.content?.["application/problem+json"]?.examples ?? {});
    const codes = examples.map(({ value }) => value).filter(Boolean);
    if (!codes.length) return [[answer.status, "", inline(answer.description ?? "", context)]];
    return codes.map((problem) => [answer.status, h("a", { href: `/problems/${problem.code}` }, h("code", null, problem.code)), problem.title]);
  });
  return h("table", { class: "errors" },
    h("thead", null, h("tr", null, ["Status", "Code", "Meaning"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", null, rows.map((row) => h("tr", null, row.map((cell) => h("td", null, cell))))));
}

function answerCard(answer) {
  const [type, { example } = {}] = Object.entries(answer?.content ?? {})[0] ?? [""];
  const text = example === undefined ? "" : pretty(JSON.stringify(example));
  return h("section", { class: "card", "aria-label": "Example of the answer" },
    h("div", { class: "bar" }, h("h2", null, "Answer ", h("span", { class: "status" }, answer?.status ?? "")), text && copyButton(() => text, "the answer")),
    text ? h("pre", { tabindex: "0", role: "group", "aria-label": "Example of the answer" }, h("code", null, highlighted(text, "json")))
      : h("p", { class: "media" }, type ? ["A file: ", h("code", null, type)] : "There is no body."));
}

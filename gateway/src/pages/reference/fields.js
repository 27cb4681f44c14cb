// What a schema or a list of parameters holds, as a list that can be read: names, types, limits, and nested ones below.

import { breakable, h } from "./dom.js";
import { merged } from "./document.js";
import { blocks } from "./markdown.js";

const MAX_DEPTH = 8;

/** The fields of an object. Each has an anchor: the prefix and its path. */
export function fieldList(context, schema, prefix) {
  return objectFields(context, merged(context.document, schema), prefix, []);
}

/** Parameters of one kind, such as those of the query. */
export function parameterList(context, parameters, prefix) {
  const items = parameters.map((parameter) => {
    const schema = { ...merged(context.document, parameter.schema ?? {}) };
    if (schema.examples === undefined && parameter.example !== undefined) schema.examples = [parameter.example];
    const described = { ...schema, description: parameter.description ?? "" };
    return field(context, parameter.name, described, parameter.required === true, prefix, []);
  });
  return h("ul", { class: "fields" }, items);
}

function objectFields(context, schema, prefix, above) {
  const entries = Object.entries(schema.properties ?? {});
  if (!entries.length) return null;
  const needed = new Set(schema.required ?? []);
  // What must be there first; then as the document has it.
  entries.sort(([one], [other]) => Number(needed.has(other)) - Number(needed.has(one)));
  const items = entries.map(([name, property]) => {
    return field(context, name, merged(context.document, property), context.isInput && needed.has(name), prefix, above);
  });
  return h("ul", { class: "fields" }, items);
}

function field(context, name, schema, isRequired, prefix, above) {
  const path = [...above, name];
  const id = `${prefix}-${path.join(".")}`;
  const inner = nested(context, schema, prefix, path);
  return h("li", { id },
    h("div", { class: "field" },
      h("a", { class: "anchor", href: `#${id}` }, h("code", { class: "name" }, breakable(name))),
      h("span", { class: "type" }, typeOf(context, schema)),
      isRequired && h("span", { class: "required" }, "required")),
    blocks(schema.description, context),
    facts(context, schema),
    inner && h("div", { class: "nested", role: "group", "aria-label": `Fields of ${name}` }, inner));
}

function nested(context, schema, prefix, path) {
  if (path.length >= MAX_DEPTH) return null;
  const item = kinds(schema).includes("array") ? merged(context.document, schema.items ?? {}) : schema;
  return objectFields(context, item, prefix, path);
}

const kinds = (schema) => [schema.type ?? (schema.properties ? "object" : [])].flat();

const FORMATS = { uuid: "id", date: "date", "date-time": "time", email: "email address", uri: "address", "uri-reference": "address", binary: "bytes" };

/** Such as `array of objects, or null`. */
function typeOf(context, schema) {
  const names = kinds(schema).filter((kind) => kind !== "null").map((kind) => {
    if (kind === "array") return arrayOf(context, schema);
    return kind === "string" && FORMATS[schema.format] ? FORMATS[schema.format] : kind;
  });
  const choices = (schema.anyOf ?? schema.oneOf ?? []).map((one) => FORMATS[one.format] ?? one.type ?? "").filter(Boolean);
  const shown = choices.length ? choices : names.length ? names : ["any value"];
  const isDecimal = names.includes("number") && names.includes("string");
  const text = isDecimal ? "decimal" : shown.join(" or ");
  return kinds(schema).includes("null") ? `${text}, or null` : text;
}

function arrayOf(context, schema) {
  const item = merged(context.document, schema.items ?? {});
  const kind = kinds(item).filter((one) => one !== "null")[0] ?? "value";
  return `list of ${FORMATS[item.format] ?? kind}s`;
}

const number = (value) => Number(value).toLocaleString("en");

/** The limits of a value. An example only where one is to be sent: answers have a whole one beside them. */
function facts(context, schema) {
  const found = [];
  const values = (schema.enum ?? merged(context.document, schema.items ?? {}).enum ?? []).filter((value) => value !== null && value !== "");
  if (values.length) found.push(["One of ", values.flatMap((value, index) => [index ? " " : "", h("code", null, String(value))])]);
  if (schema.const !== undefined) found.push(["Always ", h("code", null, String(schema.const))]);
  const [least, most] = [schema.minLength, schema.maxLength];
  if (least !== undefined && most !== undefined) found.push([`${number(least)} to ${number(most)} characters`]);
  else if (most !== undefined) found.push([`At most ${number(most)} characters`]);
  else if (least !== undefined) found.push([least === 1 ? "Not empty" : `At least ${number(least)} characters`]);
  found.push(...range(schema));
  if (schema.maxItems !== undefined) found.push([`At most ${number(schema.maxItems)} entries`]);
  if (schema.minItems) found.push([`At least ${number(schema.minItems)} entries`]);
  if (schema.minProperties) found.push([`At least ${schema.minProperties === 1 ? "one field" : `${schema.minProperties} fields`}`]);
  if (schema.default !== undefined) found.push(["Default ", h("code", null, JSON.stringify(schema.default))]);
  const example = schema.examples?.[0];
  if (context.isInput && example !== undefined && example !== null && typeof example !== "object" && !values.length) {
    found.push(["For example ", h("code", null, String(example))]);
  }
  if (!found.length) return null;
  return h("ul", { class: "facts" }, found.map((fact) => h("li", null, fact)));
}

function range({ minimum, maximum, exclusiveMinimum, exclusiveMaximum, pattern, description }) {
  if (exclusiveMinimum !== undefined && exclusiveMinimum === -exclusiveMaximum) {
    const before = String(exclusiveMaximum).length - 1;
    const behind = /\{1,(\d+)\}\)\?\$$/.exec(pattern ?? "")?.[1];
    const both = behind && !/digits/.test(description ?? "") ? ` and ${behind} behind it` : "";
    return [[`At most ${before} digits before the point${both}`]];
  }
  if (minimum !== undefined && maximum !== undefined) return [[`${number(minimum)} to ${number(maximum)}`]];
  if (minimum !== undefined) return [[`At least ${number(minimum)}`]];
  if (maximum !== undefined) return [[`At most ${number(maximum)}`]];
  return [];
}
